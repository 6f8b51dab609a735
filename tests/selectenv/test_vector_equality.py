"""The native vector shows bit by bit what vectors of single environments show: all ids, options and autoreset modes."""

import subprocess
import sys

import pytest
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st

import selectenv
from selectenv.errors import SelectEnvError
from selectenv.options import EPISODE, DataOptions, EnvironmentOptions, EvaluationOptions, LearnerOptions, names
from tests.selectenv.vector_twins import PLAYED, RANDOM, SMALL, assert_same_play, make_native, make_sync, played_data
from tests.stress import repetitions

pytestmark = pytest.mark.filterwarnings("ignore::selectenv.errors.UnseenStatesWarning")  # games with little data
MODES = list(AutoresetMode)
ENVIRONMENT = {
    "budget": st.sampled_from([1, 3, 5, 0.2, (0.1, 0.4)]),
    "reward_mode": st.sampled_from(["final", "marginal"]),
    "phase": st.sampled_from(["train", "test"]),
    "initial_ratio": st.sampled_from([0.1, 0.15]),
    "labels_per_refit": st.sampled_from([1, 2, 0.1]),
    "occupancy": st.sampled_from(["normalised", "published"]),
    "exploit": st.sampled_from(["best", "best", "pooled"]),
    "features": st.sampled_from(
        [None, ["value", "budget"], ["labelled", "reward", "reward_scale"], ["predecessors"], ["on_policy_visitation"]]
    ),
}
PROBLEM = {
    "dataset": st.sampled_from(["train", "test-0.55"]),
    "dataset_seed": st.sampled_from([0, 0, 1, None]),
    "expert_share": st.sampled_from([0.3, 0.9]),
    "mixture": st.sampled_from(["all", "non-expert"]),
    "expert": st.sampled_from(["published", "optimal"]),
    "groups": st.sampled_from([None, None, EPISODE]),
    "learner": st.sampled_from(["uds", "adapted"]),
    "solver": st.sampled_from(["exact", "exact", "exact", "sampled"]),
    "impute": st.sampled_from([0, -0.5, "min", "dataset-min"]),
    "unseen": st.sampled_from(["zero", "exclude"]),
    "expectile": st.sampled_from(["max", "max", 0.7]),
    "gamma": st.sampled_from([0.99, 0.5]),
    "learner_seed": st.sampled_from([0, 1]),
    "passes": st.just(2),
    "evaluator": st.sampled_from(["exact", "exact", "exact", "rollout"]),
    "rollouts": st.just(5),
    "evaluation_seed": st.sampled_from([0, 1]),
    "discount": st.sampled_from([1.0, 0.9]),
}


def test_every_id_and_option_is_drawn():
    """Ids are listed by another process, because tests register worlds in this one."""
    listing = "import gymnasium, selectenv; print(*(name for name in gymnasium.registry if 'RewardSelection' in name))"
    found = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    assert set(found.stdout.split()) == {*SMALL, *PLAYED}
    assert {*ENVIRONMENT, "render_mode"} == {*names(EnvironmentOptions)}
    every = {*names(DataOptions, LearnerOptions, EvaluationOptions)}
    assert {*PROBLEM} == every - {"dataset_size", "cache", "scale"}  # fixed here, and an option of the games


def some(options):
    """Return a strategy that draws values for some of the options."""
    return st.fixed_dictionaries({}, optional=options)


def compatible(options):
    """Leave out most of the options that do not go together."""
    options = dict(options)
    if options.get("learner") == "adapted":
        options.pop("impute", None)
    if options.get("evaluator") != "rollout":
        options.pop("rollouts", None)
        options.pop("evaluation_seed", None)
    if options.get("solver") != "sampled":
        options.pop("passes", None)
        options.pop("learner_seed", None)
    else:
        options.pop("expectile", None)
    if options.get("phase") == "test":
        options.pop("reward_mode", None)
        if options.get("impute") == "dataset-min":
            del options["impute"]
    if options.get("groups") is not None and options.get("dataset_seed", 0) is None:
        del options["dataset_seed"]  # fresh data have another number of episodes
    if "initial_ratio" in options:
        options["budget"] = (0.3, 0.5) if isinstance(options.get("budget"), tuple) else 0.4
    return options


def assert_equal_vectors(env_id, mode, count, seed, steps, **options):
    """Play both vectors; where one of them refuses its options, the other must refuse them in the same words."""
    pair, refusals = [], []
    for make in (make_sync, make_native):
        try:
            pair.append(make(env_id, count, mode, **options))
        except SelectEnvError as error:
            refusals.append((type(error), str(error)))
    if refusals:
        assert len(refusals) == 2
        assert refusals[0] == refusals[1]
        return
    assert_same_play(*pair, steps, seed)


@pytest.mark.parametrize("env_id", [env_id for env_id in SMALL if env_id != RANDOM])
@settings(max_examples=repetitions(50, 500))
@given(
    mode=st.sampled_from(MODES),
    options=some({**ENVIRONMENT, **PROBLEM}),
    count=st.integers(1, 4),
    seed=st.integers(0, 1000),
)
def test_worlds(env_id, mode, options, count, seed):
    assert_equal_vectors(env_id, mode, count, seed, 9, **SMALL[env_id], cache=False, **compatible(options))


RANDOM_OPTIONS = {**ENVIRONMENT, "learner": PROBLEM["learner"]}
del RANDOM_OPTIONS["initial_ratio"]  # Gymnasium cannot stack different numbers of initial labels; see test_vector_env


@settings(max_examples=repetitions(20, 200))
@given(
    mode=st.sampled_from(MODES),
    options=some(RANDOM_OPTIONS),
    seed=st.integers(0, 1000),
    padding=st.sampled_from([20, 20, 130]),  # compiled up to 128 states
)
def test_random_worlds(mode, options, seed, padding):
    assert_equal_vectors(RANDOM, mode, 3, seed, 7, padding=padding, largest=20, **compatible(options))


OPTIONS_BY_MODE = {
    AutoresetMode.NEXT_STEP: {"reward_mode": "marginal"},
    AutoresetMode.SAME_STEP: {"initial_ratio": 0.004, "exploit": "best", "learner": "adapted"},
    AutoresetMode.DISABLED: {"phase": "test", "features": ["value", "on_policy_visitation"]},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("env_id", PLAYED)
def test_worlds_that_are_played(env_id, mode):
    options = {"learner": "uds", "budget": 3, "labels_per_refit": 2, "rollouts": 2, **OPTIONS_BY_MODE[mode]}
    assert_equal_vectors(env_id, mode, 2, 0, 5, dataset=played_data(env_id), **options)


@pytest.mark.parametrize("mode", MODES)
def test_networks(mode):
    options = {"learner": "iql", "updates": 2, "budget": 3, "labels_per_refit": 2, "rollouts": 2}
    env_id = selectenv.env_id("Breakout")
    assert_equal_vectors(env_id, mode, 2, 0, 5, dataset=played_data(env_id), **options)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("world", "options"),
    [
        ("Graph", {"budget": 0.6, "initial_ratio": 0.2}),
        ("CliffWalk", {"budget": 0.3, "initial_ratio": 0.1, "impute": "min", "reward_mode": "marginal"}),
        ("Tree", {"budget": 3, "depth": 8, "dataset_size": 3_000}),  # more states than lanes eliminate
        ("FrozenLake", {"budget": 3, "map_name": "8x8"}),
        ("Sparse", {"budget": 3, "n_states": 200}),
    ],
)
def test_options_of_worlds(mode, world, options):
    assert_equal_vectors(selectenv.env_id(world), mode, 3, 0, 9, **{"dataset_size": 1_000, **options})


@pytest.mark.parametrize("chosen", [{"budget": 2}, {"budget": (0.1, 0.3)}, {"initial": [3, 1]}, {"budget": 0.2}])
def test_options_of_reset(chosen):
    pair = [make("RewardSelection-Tree-v0", 3, budget=5, dataset_size=1_000) for make in (make_sync, make_native)]
    assert_same_play(*pair, 4, options=chosen)
    assert_same_play(*pair, 7, seed=1)
    for envs in pair:
        envs.reset()  # without draws: a single environment draws all the same
    assert_same_play(*pair, 3, seed=None, options={"budget": (0.1, 0.9)})


@pytest.mark.parametrize("mode", MODES)
def test_episodes_that_end_at_different_steps(mode):
    """With as many environments, some steps reset none of them, some, or all."""
    options = {"budget": (0.1, 0.5), "initial_ratio": 0.05, "reward_mode": "marginal", "dataset_size": 1_000}
    assert_equal_vectors("RewardSelection-Tree-v0", mode, 12, 5, 30, **options)
