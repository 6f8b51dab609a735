"""SelectionView: a strategy learns the rewards of labelled states from it, and nothing more."""

import gc
import inspect
import types
from collections import deque

import numpy as np
import pytest

import agents
import selectenv
from selectenv.evaluation import Evaluator, ExactReturns, GameReturns, RolloutReturns
from selectenv.learners import FitResult
from selectenv.view import SelectionView

LABELS = (15, 3, 19)
FORBIDDEN = (
    Evaluator,
    ExactReturns,
    GameReturns,
    RolloutReturns,
    FitResult,
    selectenv.SelectionProblem,
    selectenv.RewardSelectionEnv,
    selectenv.TabularWorld,
)
CODE = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.CodeType,
    types.FrameType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.MethodWrapperType,
    property,
)
"""What belongs to the program and not to the data."""
PLAIN = (str, bytes, int, float, bool, complex, type(None), np.generic, np.dtype)


def reachable(root):
    """Yield every object that references, attributes, properties, bound methods and closures of ``root`` lead to."""
    seen, waiting = set(), deque([root])
    alive = []  # an id is unique only as long as its object lives
    while waiting:
        thing = waiting.popleft()
        if id(thing) in seen or isinstance(thing, PLAIN):
            continue
        seen.add(id(thing))
        alive.append(thing)
        if isinstance(thing, types.FunctionType):  # not its globals, but what it has closed over
            waiting.extend(cell.cell_contents for cell in thing.__closure__ or () if cell_is_full(cell))
            continue
        if isinstance(thing, CODE):
            continue
        yield thing
        waiting.extend(gc.get_referents(thing))
        if isinstance(thing, np.ndarray):
            waiting.append(thing.base)
            continue
        for name in dir(thing):
            if not (name.startswith("__") and name.endswith("__")):
                value = attribute(thing, name)
                waiting.append(value)
                if isinstance(value, types.MethodType):
                    waiting.append(value.__self__)


def cell_is_full(cell):
    try:
        cell.cell_contents  # noqa: B018 - reading it is the test
    except ValueError:
        return False
    return True


def attribute(thing, name):
    """Return an attribute, computing it if it is a property; None where it refuses."""
    try:
        return getattr(thing, name)
    except Exception:  # a property may refuse in any way, for instance because there are no rewards
        return None


def leaks(view, data, labels):
    """Return what a view leads to and should not."""
    hidden = data.hidden_reward
    secret = ~np.isin(data.state, labels)
    assert hidden[secret].any()
    found = []
    for thing in reachable(view):
        if isinstance(thing, FORBIDDEN):
            found.append(thing)
        if isinstance(thing, np.ndarray):
            numbers = thing.dtype.kind in "fiu"
            equal = numbers and thing.shape == hidden.shape and np.array_equal(thing[secret], hidden[secret])
            if thing is hidden or np.shares_memory(thing, hidden) or equal:
                found.append(thing)
    return found


def played(**options):
    """Return an environment in the middle of an episode, after everything about its data has been computed."""
    env = selectenv.make_env("Tree", budget=6, dataset_size=2000, **options)
    env.reset(seed=0)
    env.view()
    data, problem = env.problem.dataset, env.problem
    for state in LABELS[:2]:
        env.step(state)
    for name in dir(data):
        getattr(data, name)
    problem.performance_many(np.ones((1, 31), bool))
    problem.performance([0])
    env.step(LABELS[2])
    return env


@pytest.mark.parametrize(
    "options",
    [{}, {"learner": "adapted"}, {"solver": "sampled"}, {"unseen": "exclude", "impute": "min"}, {"initial_ratio": 0.1}],
)
def test_nothing_in_a_view_leads_to_hidden_rewards_or_to_the_evaluator(options):
    env = played(**options)
    assert leaks(env.view(), env.problem.dataset, env.labels) == []


@pytest.mark.parametrize("name", ["terminal", "guided", "learned", "terminal-guided"])
def test_strategies_keep_nothing_that_leads_further(name):
    env = played()
    agent = agents.make(name)
    agents.play(env, agent)
    assert leaks(agent, env.problem.dataset, env.labels) == []


def plant_environment(view, env):
    view.env = env


def plant_bound_method(view, env):
    view.ask = env.problem.performance


def plant_closure(view, env):
    view.reveal_all = lambda: env.problem.dataset.hidden_reward


def plant_rewards(view, env):
    view.dataset.spec["notes"] = [{"rewards": env.problem.dataset.hidden_reward}]


def plant_copy(view, env):
    view.copy = env.problem.dataset.hidden_reward.copy()


def plant_slice(view, env):
    view.part = env.problem.dataset.hidden_reward[5:10]


def plant_whole_dataset(view, env):
    view.dataset = env.problem.dataset


def plant_engine(view, env):
    view.engine = (env.problem.evaluator.engine,)


def plant_property(view, env):
    class Leaking(SelectionView):
        @property
        def world(self):
            return env.problem.evaluator.engine.world

    view.__class__ = Leaking


@pytest.mark.parametrize(
    "plant",
    [
        plant_environment,
        plant_bound_method,
        plant_closure,
        plant_rewards,
        plant_copy,
        plant_slice,
        plant_whole_dataset,
        plant_engine,
        plant_property,
    ],
)
def test_planted_leaks_are_found(plant):
    env = played()
    view = env.view()
    assert leaks(view, env.problem.dataset, env.labels) == []
    plant(view, env)
    assert leaks(view, env.problem.dataset, env.labels)


@pytest.mark.parametrize("initial", [0.0, 0.1])
def test_a_view_has_exactly_the_rewards_of_labelled_states(initial):
    env = selectenv.make_env("Tree", budget=9, dataset_size=2000, initial_ratio=initial)
    env.reset(seed=0)
    data = env.problem.dataset
    early = env.view()
    assert early.labels_to_choose == 9 - len(early.initial) == 9 - int(initial * 31)
    np.testing.assert_array_equal(early.rewards, data.reveal(env.labelled_at > 0))
    env.step(15)
    env.step(15)  # wasted
    env.step(np.array([7, 7, 19]))
    assert env.view() is early
    np.testing.assert_array_equal(early.rewards, data.reveal(env.labelled_at > 0))
    assert early.dataset.states_with_rewards(early.rewards).sum() == 3 + len(early.initial)
    before = early.rewards.copy()
    env.reset(seed=1)
    np.testing.assert_array_equal(early.rewards, before)  # the view of an episode ends with it
    np.testing.assert_array_equal(env.view().rewards, data.reveal(env.labelled_at > 0))


def test_a_view_tells_the_terms_of_the_episode():
    env = played(learner="adapted", gamma=0.9)
    view = env.view()
    assert (view.rule, view.gamma, view.budget, view.labels_to_choose) == ("adapted", 0.9, 6, 6)
    assert view.dataset is env.problem.dataset.without_rewards
    assert not view.dataset.has_rewards


def test_the_rewards_of_a_view_are_read_only():
    env = played()
    rewards = env.view().rewards
    with pytest.raises(ValueError, match="read-only"):
        rewards[0] = 1.0
    with pytest.raises(AttributeError):
        env.view().rewards = np.zeros(len(rewards))


def test_views_of_data_without_rewards_stay_empty():
    data = selectenv.from_arrays([0, 1, 2], [0, 1, 0], [1, 2, 0], [False, False, True])
    env = selectenv.make_env(dataset=data, budget=2)
    env.reset(seed=0)
    view = env.view()
    env.step(2)
    assert np.isnan(view.rewards).all()


def test_every_attribute_of_a_view_is_documented():
    view = played().view()
    public = {name for name in vars(view) if not name.startswith("_")}
    terms = {"rule", "gamma", "impute", "unseen", "budget", "initial", "oracle", "exploit", "labels_per_refit"}
    assert public == {"dataset", *terms}
    assert inspect.getdoc(SelectionView.rewards)
