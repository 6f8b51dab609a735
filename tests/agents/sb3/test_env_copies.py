"""Training in several environments: copies have the wrappers of the original, or are refused by name."""

import gymnasium as gym
import pytest
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import TimeLimit, TransformReward

import agents
import selectenv
from agents.errors import EnvironmentCopyError
from agents.sb3.env_copies import copy_of
from selectenv.errors import OptionError, OptionTypeError, SelectEnvError
from selectenv.wrappers import BatchLabels, TensorBoardMonitor

PPO = {"steps": 32, "hidden": 8, "sb3": {"n_steps": 8, "batch_size": 8, "n_epochs": 1}}
SIZE = {"dataset_size": 500, "cache": False}


class AnyArguments(gym.Wrapper):
    def __init__(self, env, *given, **options):
        super().__init__(env)


class Raising(gym.Wrapper):
    """Raises in every step; its constructor takes only the environment."""

    def step(self, action):
        raise LookupError("the wrapper was called")


class Bonus(gym.Wrapper):
    """Does not record its argument."""

    def __init__(self, env, bonus):
        super().__init__(env)
        self.bonus = bonus


class MoreRecorded(TimeLimit):
    """Has an argument that its base class does not record."""

    def __init__(self, env, max_episode_steps=10, bonus=1.0):
        super().__init__(env, max_episode_steps)
        self.bonus = bonus


class Renamed(gym.Wrapper, RecordConstructorArgs):
    """Records an argument under a name that its constructor does not have."""

    def __init__(self, env, **more):
        RecordConstructorArgs.__init__(self, other=1)
        super().__init__(env)
        if more:
            raise TypeError("other is not an argument")


class OwnEnv(selectenv.RewardSelectionEnv):
    """A class whose twin would be of another class."""


def graph(**options):
    return gym.make("RewardSelection-Graph-v0", budget=3, **SIZE, **options)


def layers(env):
    found = []
    while isinstance(env, gym.Wrapper):
        found.append(type(env))
        env = env.env
    return found


@pytest.mark.parametrize("count", [1, 2])
def test_a_monitor_around_the_environment_logs_every_copy(count, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    agent = agents.make("maskable-ppo", n_envs=count, **PPO)
    env = TensorBoardMonitor(graph(), tmp_path)
    agent.train(env)
    env.close()
    logs = [EventAccumulator(str(path)).Reload() for path in sorted(tmp_path.glob("env-*"))]
    episodes = [len(log.Scalars("episode/performance")) for log in logs if log.Tags()["scalars"]]
    assert len(episodes) == count
    assert sum(episodes) >= 32 // 3 - count


@pytest.mark.parametrize("count", [1, 2])
def test_a_wrapper_is_called_in_training_and_in_evaluation(count):
    agent = agents.make("maskable-ppo", n_envs=count, **PPO)
    with pytest.raises(LookupError, match="the wrapper was called"):
        agent.train(Raising(graph()))
    agent.train(selectenv.make_env("Graph", budget=3, **SIZE), steps=8)
    watch = agent.evaluation(Raising(graph()), every=1)
    with pytest.raises(LookupError, match="the wrapper was called"):
        agent.train(selectenv.make_env("Graph", budget=3, **SIZE), steps=8, callback=watch)


def test_copies_have_the_wrappers_the_problem_and_counts_of_their_own(tmp_path):
    env = TensorBoardMonitor(
        TransformReward(TimeLimit(graph(initial_ratio=0.1), 7), lambda reward: 2 * reward), tmp_path
    )
    copy = copy_of(env)
    assert layers(copy) == layers(env)
    assert copy.spec.id == env.spec.id
    ours, theirs = env.unwrapped, copy.unwrapped
    assert ours is not theirs
    assert ours.options == theirs.options
    assert theirs.problem.dataset is ours.problem.dataset
    theirs.problem.performance([0])
    assert (ours.calls.asked, theirs.calls.asked) == (0, 1)
    for one in (env, copy):
        one.reset(seed=3)
        for action in theirs.action_masks().nonzero()[0][:2]:
            reward = one.step(int(action))[1]
        assert reward == 2 * one.unwrapped.problem.score(one.unwrapped.labelled_at > 0)
        one.close()


def test_wrappers_without_arguments_of_a_bare_environment_are_copied():
    env = Raising(selectenv.make_env("Graph", budget=3, **SIZE))
    assert layers(copy_of(env)) == [Raising]
    assert layers(copy_of(env.unwrapped)) == []
    fresh = selectenv.make_env("Graph", budget=3, dataset_seed=None, dataset_size=500)
    assert copy_of(fresh).source is fresh.source


@pytest.mark.parametrize(
    ("wrap", "named"),
    [
        (lambda env: Bonus(env, 2.0), r"Bonus .* its argument bonus is not recorded"),
        (lambda env: MoreRecorded(env, 5, 2.0), r"MoreRecorded .* its argument bonus is not recorded"),
        (lambda env: AnyArguments(env, 5), r"AnyArguments .* its arguments given, options are not recorded"),
        (Renamed, "Renamed .*other is not an argument"),
        (lambda env: OwnEnv(env.unwrapped.problem, 3), "OwnEnv derives from RewardSelectionEnv"),
    ],
)
def test_what_cannot_be_copied_is_refused_with_the_alternatives(wrap, named):
    agent, env = agents.make("maskable-ppo", n_envs=2, **PPO), wrap(graph())
    with pytest.raises(EnvironmentCopyError, match=named) as refused:
        agent.train(env)
    assert isinstance(refused.value, SelectEnvError)
    assert isinstance(refused.value, TypeError)
    assert all(way in str(refused.value) for way in ("train(make_env)", "train([env, ...])", "n_envs=1"))
    with pytest.raises(EnvironmentCopyError):
        agent.evaluation(env, every=8)
    agent.train([wrap(graph())], steps=8)
    agents.make("maskable-ppo", n_envs=1, **PPO).train(env, steps=8)


def test_a_function_makes_the_environments(tmp_path):
    made = []

    def make_env():
        made.append(Bonus(TensorBoardMonitor(graph(), tmp_path), 2.0))
        return made[-1]

    agent = agents.make("maskable-ppo", n_envs=3, **PPO)
    agent.train(make_env, callback=agent.evaluation(make_env, every=100))
    assert len(made) == 4
    closed = [one.env._log.closed for one in made]
    assert closed == [False, True, True, True]  # that of the evaluation belongs to the caller
    made[0].close()
    assert agent.training_calls != agents.make("maskable-ppo").training_calls
    assert sum(one.env._episode is not None for one in made) == 3


def test_wrong_functions_and_batches_are_refused():
    agent = agents.make("maskable-ppo", n_envs=2, **PPO)
    for wrong in (lambda: 3, lambda size: graph(), "RewardSelection-Graph-v0", None):
        with pytest.raises(OptionTypeError):
            agent.train(wrong)
    env = graph()
    with pytest.raises(OptionError, match="twice"):
        agent.train(lambda: env)
    with pytest.raises(OptionError, match="one state per step"):
        agent.train(BatchLabels(graph(), 2))
