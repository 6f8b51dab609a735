"""check_vector_env: every id and autoreset mode passes, and environments with a fault do not."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import selectenv
from selectenv.episode_batch import EpisodeBatch
from selectenv.errors import OptionError, OptionTypeError, VectorCheckError
from selectenv.wrappers import FlatObservation
from tests.selectenv.vector_twins import PLAYED, SMALL, make_native, make_sync, played_data

pytestmark = pytest.mark.filterwarnings("ignore::selectenv.errors.UnseenStatesWarning")  # games with little data
MODES = list(AutoresetMode)
GRAPH = selectenv.env_id("Graph")
OPTIONS = {"budget": 4, "initial_ratio": 0.1, "reward_mode": "marginal", "dataset_size": 1_000}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", [*SMALL, *PLAYED])
def test_every_id_and_mode_passes(env_id, mode):
    options = SMALL.get(env_id) or {"dataset": played_data(env_id), "rollouts": 2, "learner": "uds"}
    selectenv.check_vector_env(lambda: make_native(env_id, 3, mode, budget=3, **options))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "options",
    [
        OPTIONS,
        {"budget": (0.2, 0.5), "dataset_seed": None, "dataset_size": 500},
        {"budget": 3, "phase": "test", "features": ["value"], "dataset_size": 1_000},
        {"budget": 1, "solver": "sampled", "passes": 1, "dataset_size": 500},
    ],
)
def test_options_pass(mode, options):
    selectenv.check_vector_env(lambda: make_native(GRAPH, 4, mode, **options), seed=5)


@pytest.mark.parametrize("mode", MODES)
def test_vectors_of_gymnasium_pass(mode):
    """What the checker demands is Gymnasium's contract, not ours."""
    selectenv.check_vector_env(lambda: make_sync(GRAPH, 3, mode, **OPTIONS))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [make_native, make_sync])
def test_flat_observations_pass(mode, make):
    selectenv.check_vector_env(lambda: FlatObservation(make(GRAPH, 3, mode, **OPTIONS)))


def test_data_without_rewards_pass():
    data = selectenv.from_arrays([0, 1, 2], [0, 1, 0], [1, 2, 0], [False, False, True])
    selectenv.check_vector_env(lambda: selectenv.make_vector_env(dataset=data, budget=2, num_envs=2))


class Fault(gym.vector.VectorWrapper):
    """A wrapper that spoils one thing."""

    def reset(self, *, seed=None, options=None):
        return self.changed(*self.env.reset(seed=seed, options=options))

    def step(self, actions):
        return self.changed(*self.env.step(actions))

    def changed(self, *result):
        return result


class Doubles(Fault):
    def changed(self, obs, *rest):
        return {name: array.astype(np.float64) for name, array in obs.items()}, *rest


class BatchOfAnotherSize(Fault):
    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gym.vector.utils.batch_space(self.single_observation_space, self.num_envs + 1)


class NoSeeds(Fault):
    def reset(self, *, seed=None, options=None):
        return self.env.reset(options=options)


class SameSeedForInts(Fault):
    def reset(self, *, seed=None, options=None):
        return self.env.reset(seed=[seed] * self.num_envs if isinstance(seed, int) else seed, options=options)


class ReusedArrays(Fault):
    last = None

    def changed(self, obs, *rest):
        if self.last is None:
            self.last = obs
        for name, array in self.last.items():
            array[:] = obs[name]
        return self.last, *rest


class SharedArrays(Fault):
    def changed(self, obs, *rest):
        return {**obs, "value": obs["reward"]}, *rest


class OpenMasks(Fault):
    def action_masks(self):
        return np.ones_like(self.env.action_masks())


class StaleMasks(Fault):
    def changed(self, *result):
        result[-1]["action_mask"][:] = 1
        return result


class Truncates(Fault):
    def step(self, actions):
        obs, rewards, terminated, truncated, info = self.env.step(actions)
        return obs, rewards, terminated, terminated | truncated, info


class OtherRewards(Fault):
    def step(self, actions):
        obs, rewards, *rest = self.env.step(actions)
        return obs, rewards + 1e-3, *rest


class SingleRewards(Fault):
    def step(self, actions):
        obs, rewards, *rest = self.env.step(actions)
        return obs, rewards.astype(np.float32), *rest


class NeverEnds(Fault):
    def step(self, actions):
        obs, rewards, terminated, *rest = self.env.step(actions)
        return obs, rewards, np.zeros_like(terminated), *rest


class NoPerformance(Fault):
    def changed(self, *result):
        for info in (result[-1], result[-1].get("final_info", {})):
            info.pop("performance", None)
            info.pop("_performance", None)
        return result


class NoFinalObservation(Fault):
    def changed(self, *result):
        result[-1].pop("final_obs", None)
        result[-1].pop("_final_obs", None)
        return result


class FirstAsFinalObservation(Fault):
    def changed(self, obs, *rest):
        for number in np.flatnonzero(rest[-1].get("_final_obs", ())):
            rest[-1]["final_obs"][number] = {name: array[number].copy() for name, array in obs.items()}
        return obs, *rest


class ResetsAll(Fault):
    def reset(self, *, seed=None, options=None):
        mask = None if options is None else {"reset_mask": np.ones(self.num_envs, bool)}
        return self.env.reset(seed=seed, options=mask)


class OtherMode(Fault):
    @property
    def metadata(self):
        modes = {AutoresetMode.NEXT_STEP: AutoresetMode.SAME_STEP, AutoresetMode.SAME_STEP: AutoresetMode.NEXT_STEP}
        return {**self.env.metadata, "autoreset_mode": modes[self.env.metadata["autoreset_mode"]]}


class NoMode(Fault):
    metadata = {"render_modes": []}  # noqa: RUF012 - as in Gymnasium


ANY, NEXT, SAME, OFF = MODES[0], AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED


@pytest.mark.parametrize(
    ("fault", "mode", "message"),
    [
        (Doubles, ANY, "float64 instead of float32|is not in its space"),
        (BatchOfAnotherSize, ANY, "observation_space is not single_observation_space, batched"),
        (NoSeeds, ANY, "between a reset with seed s"),
        (SameSeedForInts, ANY, "between a reset with seed s"),
        (ReusedArrays, ANY, "in an array that was returned earlier"),
        (SharedArrays, ANY, "share memory"),
        (OpenMasks, ANY, "action_masks"),
        (StaleMasks, ANY, "differs from action_masks"),
        (Truncates, ANY, "truncated"),
        (OtherRewards, NEXT, "pays a reward|sum to its performance"),
        (OtherRewards, OFF, "sum to its performance"),
        (SingleRewards, ANY, "rewards are not an array"),
        (NeverEnds, ANY, "does not end with the last label"),
        (NoPerformance, ANY, "without info"),
        (NoPerformance, SAME, "without info"),
        (NoFinalObservation, SAME, "_final_obs"),
        (FirstAsFinalObservation, SAME, "labels are left"),
        (ResetsAll, OFF, "resets other environments"),
        (OtherMode, NEXT, "final_obs|the infos of a reset"),
        (OtherMode, SAME, "final observations"),
        (NoMode, ANY, "not an AutoresetMode"),
    ],
)
def test_faults_are_found(fault, mode, message):
    options = {**OPTIONS, "budget": (0.2, 0.5)} if fault is ResetsAll else OPTIONS
    with pytest.raises(VectorCheckError, match=message):
        selectenv.check_vector_env(lambda: fault(make_native(GRAPH, 3, mode, **options)))


def test_arrays_of_the_environment_are_found(monkeypatch):
    """Observations that are views of the arrays in which episodes are played."""
    monkeypatch.setattr(EpisodeBatch, "observation", lambda batch: dict(batch.rows))
    with pytest.raises(VectorCheckError, match=r"earlier|share memory"):
        selectenv.check_vector_env(lambda: make_native(GRAPH, 3, **OPTIONS))


def test_wrong_arguments():
    with pytest.raises(OptionTypeError, match="make"):
        selectenv.check_vector_env(3)
    with pytest.raises(OptionError, match="seed"):
        selectenv.check_vector_env(lambda: make_native(GRAPH, 1, **OPTIONS), seed=-1)
    with pytest.raises(VectorCheckError, match=r"not a gymnasium.vector.VectorEnv"):
        selectenv.check_vector_env(lambda: gym.make(GRAPH, **OPTIONS))
    with pytest.raises(VectorCheckError, match="actions are not numbers of states"):
        selectenv.check_vector_env(lambda: gym.make_vec("Pendulum-v1", 2))
