"""Playing on data that have no rewards to reveal: strategies that use rewards warn, the others do not."""

import pytest

import agents
import selectenv
from agents.registry import AGENTS
from selectenv.errors import NoEvaluatorError, NoRewardsWarning

UNTRAINED = [name for name, row in AGENTS.items() if row.kind.taxonomy.evaluator == "never"]
CLOSED = [name for name in UNTRAINED if AGENTS[name].kind.taxonomy.test_loop == "closed"]
OPEN = [name for name in UNTRAINED if name not in CLOSED]


@pytest.fixture
def env() -> selectenv.RewardSelectionEnv:
    states, following = [0, 1, 2, 0, 1, 3], [1, 2, 0, 1, 3, 0]
    ends = [False, False, True, False, False, True]
    data = selectenv.from_arrays(states, [0, 1, 0, 1, 0, 1], following, ends)
    return selectenv.make_env(dataset=data, budget=2)


@pytest.mark.parametrize("name", CLOSED)
def test_a_strategy_that_uses_rewards_warns(name: str, env: selectenv.RewardSelectionEnv) -> None:
    with pytest.warns(NoRewardsWarning, match=f"{name} uses revealed rewards, but the data have none"):
        episode = agents.play(env, agents.make(name))
    assert len(episode.labels) == 2
    assert episode.performance is None


@pytest.mark.parametrize("name", OPEN)
def test_a_strategy_that_ignores_rewards_does_not_warn(name: str, env: selectenv.RewardSelectionEnv) -> None:
    assert agents.play(env, agents.make(name)).performance is None  # warnings are errors here


def test_both_kinds_of_strategies_exist() -> None:
    assert {"guided", "terminal-guided", "learned", "visitation-on-policy"} <= set(CLOSED)
    assert {"uniform", "visitation", "terminal"} <= set(OPEN)


def test_a_search_is_refused_by_name(env: selectenv.RewardSelectionEnv) -> None:
    with pytest.raises(NoEvaluatorError):
        agents.make("best-of").train(env)


def test_data_with_rewards_do_not_warn() -> None:
    env = selectenv.make_env("Tree", depth=3, dataset_size=300, cache=False, budget=2)
    assert agents.play(env, agents.make("guided")).performance is not None
