"""Sessions: asking, telling, skipping, undoing; several annotators; what a session reports."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import agents
import selectenv
from selectenv.errors import (
    AnswerError,
    BudgetWarning,
    DatasetError,
    ExtensionError,
    NoEvaluatorError,
    OptionError,
    OptionTypeError,
    QueryError,
    StrategyError,
    UnknownNameError,
    UnknownStateError,
)
from selectenv.labelling.state_policy import StatePolicy
from tests.selectenv.labelling.teller import FREE, Stranger, answer_with, town, truth

LabellingSession = selectenv.LabellingSession


@pytest.fixture(scope="module")
def tree():
    return selectenv.make_problem("Tree", dataset_size=3_000, cache=False)


def test_the_loop_of_the_documentation():
    session = LabellingSession(town(), strategy="terminal", budget=2)
    answers = {"shop": 1.0, "home": {0: 0.5, 1: 0}, "road": -1}
    asked = []
    while query := session.ask():
        asked.append(query.id)
        session.tell(query.id, answers[query.id])
    assert asked == ["shop", "home"]
    policy = session.policy()
    assert policy.action("home") == 0
    assert policy.probabilities("home") == {0: 1.0, 1: 0.0}
    with pytest.raises(UnknownStateError, match="no state with id 'moon'"):
        policy.action("moon")
    assert session.status().done
    assert repr(session) == "<LabellingSession in memory: terminal, 2 of 2 labels>"


def test_every_form_of_answer_gives_rewards_to_transitions():
    data = town()
    session = LabellingSession(data, "terminal", 3)
    shop, home, road = session.ask(3)
    assert [transition.next_id for transition in shop.transitions] == [None, "home"]
    session.tell(shop.id, [2, np.float64(-1)])
    session.tell(home.id, {"0": 3, 1: 4.5})
    session.tell(road.id, 7)
    np.testing.assert_array_equal(session.rewards, [3, 2, 4.5, 7, 3, -1])
    labels = {label.id: label for label in session.labels()}
    assert labels["shop"].rewards == {1: 0.5}
    assert labels["shop"].transitions == (2.0, -1.0)
    assert labels["home"].rewards == {0: 3.0, 1: 4.5}
    assert [answer.answer for answer in session.answers()] == [[2.0, -1.0], {"0": 3.0, "1": 4.5}, 7.0]


@pytest.mark.parametrize(
    "answer",
    [
        float("nan"),
        float("inf"),
        1e200,
        "1",
        True,
        None,
        [],
        [1],
        [1, 2, 3],
        [1, float("nan")],
        {},
        {0: 1},
        {0: 1, 1: 2, 2: 3},
        {0: 1, 1: None},
        {0: 1, "0": 1, 1: 1},
        {"left": 1},
        np.array(1.0),
    ],
    ids=str,
)
def test_wrong_answers_change_nothing(answer):
    session = LabellingSession(town(), "visitation", 3)
    session.ask(3)
    with pytest.raises(AnswerError, match="home"):
        session.tell("home", answer)
    assert session.answers() == []
    session.tell("home", [1, 2])
    assert session.status().answered == 1


def test_wrong_ids_are_named():
    session = LabellingSession(town(), "terminal", 2)
    query = session.ask()
    for call in (lambda id: session.tell(id, 1), session.skip, session.retract, session.query, session.release):
        with pytest.raises(UnknownStateError, match="no state with id 'moon'"):
            call("moon")
        with pytest.raises(QueryError, match="'road' has not been asked"):
            call("road")
    session.tell(query.id, 1)
    with pytest.raises(QueryError, match="answered already: retract"):
        session.tell(query.id, 1)
    with pytest.raises(QueryError, match="answered already"):
        session.skip(query.id)
    with pytest.raises(QueryError, match="no answer"):
        session.retract(session.ask().id)
    with pytest.raises(QueryError, match="has not been asked"):
        session.tell_many({"home": 1.0, "road": 1.0})
    assert [answer.id for answer in session.answers()] == [query.id], "all or none"


def test_a_query_shows_what_is_needed_to_judge():
    data = town()
    query = _query(data, "home")
    assert (query.id, query.visits, query.observation) == ("home", 3, None)
    assert [(action.action, action.count) for action in query.actions] == [(0, 2), (1, 1)]
    assert [(t.action, t.next_id, t.count, t.terminated) for t in query.transitions] == [
        (0, "shop", 2, 0),
        (1, "road", 1, 0),
    ]
    first = query.episodes[0]
    assert [(step.id, step.action, step.queried) for step in first.steps] == [("home", 0, True), ("shop", 1, False)]
    assert (first.from_start, first.next_id, first.end) == (True, None, "terminated")
    assert len(query.episodes) == 3
    shop = _query(data, "shop")
    assert [(t.next_id, t.terminated) for t in shop.transitions] == [(None, 1), ("home", 0)]
    assert shop.episodes[1].end == "truncated"


def _query(data, state):
    session = LabellingSession(data, "visitation", 3)
    return next(query for query in session.ask(3) if query.id == state)


def test_excerpts_stay_within_their_episodes(tree):
    data = tree.dataset
    session = LabellingSession(data.without_rewards, "uniform", 31)
    for query in session.ask(31):
        assert 1 <= len(query.episodes) <= 3
        for excerpt in query.episodes:
            ids = [step.id for step in excerpt.steps]
            assert [step.queried for step in excerpt.steps].count(True) == 1
            assert ids[[step.queried for step in excerpt.steps].index(True)] == query.id
            assert ids == sorted(ids)  # in a tree, ids grow along an episode
            assert excerpt.from_start == (ids[0] == 0)
            assert (excerpt.end == "terminated") == (excerpt.next_id is None)


def test_images_are_observations():
    pytest.importorskip("minatar")
    data = selectenv.make_problem("Breakout", dataset_size=500, learner="uds", cache=False).dataset
    session = LabellingSession(data.without_rewards, "visitation", 2)
    query = session.ask()
    np.testing.assert_array_equal(query.observation, data.images[int(data.numbers([query.id])[0])])


def test_actions_with_names():
    data = replace(town(), action_names=np.array(["walk", "drive"]))
    session = LabellingSession(data, "visitation", 3)
    queries = {query.id: query for query in session.ask(3)}
    assert [action.action for action in queries["home"].actions] == ["walk", "drive"]
    assert queries["home"].episodes[0].steps[0].action == "walk"
    session.tell("home", {"walk": 1, "drive": 2})
    with pytest.raises(
        AnswerError, match="the data took 'drive' in the state 'shop', and the answer has a number for 'walk'"
    ):
        session.tell("shop", {"walk": 1})
    assert session.policy().action("home") == "drive"
    assert list(session.policy().to_frame()["action"].unique()) == ["walk", "drive"]


def test_skipped_queries_cost_nothing_and_come_back_last():
    for strategy in ("terminal", "guided"):
        session, asked = LabellingSession(town(), strategy, 3), []
        first = session.ask()
        session.skip(first.id)
        assert session.status().skipped == 1
        while query := session.ask():
            asked.append(query.id)
            session.tell(query.id, 1)
        assert asked[-1] == first.id
        assert len(asked) == 3
        assert session.status().skipped == 0


def test_a_query_can_be_skipped_again_and_again():
    session = LabellingSession(town(), "terminal", 2)
    a, b = session.ask().id, session.ask().id
    session.skip(a)
    session.skip(b)
    c = session.ask().id
    assert len({a, b, c}) == 3
    session.skip(c)
    for _ in range(3):
        for id in (a, b, c):
            query = session.ask()
            assert (query.id, query.number) == (id, 1)
            session.skip(id)


@pytest.mark.parametrize("name", FREE)
def test_skipping_goes_through_all_states_before_any_comes_back(name, tmp_path):
    """The strategy chooses among the states that were not skipped; also if the session is reopened."""
    data = selectenv.from_arrays(np.arange(7), [0, 1, 0, 1, 0, 1, 0], np.arange(1, 8), np.arange(7) == 6)
    path = tmp_path / "labels.sqlite"
    with LabellingSession(data, name, 3, path) as session:
        seen = [session.ask().id]
        session.tell(seen[0], 1.0)
        seen.append(session.ask().id)
        session.skip(seen[1])
    with LabellingSession.open(path) as session:
        for _ in range(5):
            query = session.ask()
            assert query.number == 2
            seen.append(query.id)
            session.skip(query.id)
        assert sorted(seen) == list(range(7))
        assert [query.id for query in session.ask(5)] == seen[1:3], "those skipped first, as many as the budget allows"
        assert session.ask() is None
        session.tell_many(dict.fromkeys(seen[1:3], 0.5))
        assert session.status().done


def test_what_is_not_a_dataset_or_not_an_option_is_explained():
    for wrong in ("robot.csv", [1], None):
        with pytest.raises(OptionTypeError, match=r"read a log with selectenv\.from_csv, .*from_dataframe, .*load"):
            LabellingSession(wrong, budget=3)
    for option, advice in (("annotator", r"ask\(annotator="), ("groups", "group_states"), ("leese", "mean 'lease'")):
        with pytest.raises(UnknownNameError, match=f"unknown option '{option}' of a session.*{advice}") as found:
            LabellingSession(town(), budget=3, **{option: 3})
        assert "answers_per_query" in str(found.value)
    with pytest.raises(OptionError, match="low must be a finite number"):
        LabellingSession(town(), "terminal", 3).bounds(float("nan"), 1)


def test_an_answer_to_a_skipped_query_counts_towards_the_budget():
    session = LabellingSession(town(), "terminal", 2)
    a, b = session.ask().id, session.ask().id
    session.skip(a)
    c = session.ask().id
    session.tell_many({a: 1, b: 1})
    assert session.ask(annotator="bob") is None
    with pytest.raises(QueryError, match="the budget of 2 labels is spent"):
        session.tell(c, 1)
    assert session.status().done


def test_undo_and_retract_ask_again():
    session = LabellingSession(town(), "terminal", 3)
    assert session.undo() is None
    ids = answer_with(session, 1)
    session.retract(ids[0])
    assert [answer.id for answer in session.answers()] == ids[1:]
    assert np.isnan(session.rewards).any()
    assert session.undo() == ids[2]
    assert session.status().answered == 1
    assert [query.id for query in session.ask(3)] == [ids[0], ids[2]]
    session.tell(ids[0], 5)
    assert {label.id: label.rewards for label in session.labels()}[ids[0]] == {1: 5.0}


def test_several_answers_per_query_are_averaged():
    session = LabellingSession(town(), "terminal", 2, answers_per_query=2)
    first = session.ask(annotator="ann")
    assert session.ask(annotator="bob").id == first.id
    other = session.ask(annotator="carl")
    assert other.id != first.id
    session.tell(first.id, [1, 2], annotator="ann")
    assert session.status().answered == 0
    assert np.isnan(session.rewards).all()
    with pytest.raises(QueryError, match="by 'ann'"):
        session.tell(first.id, 5, annotator="ann")
    session.tell(first.id, 5, annotator="bob")
    with pytest.raises(QueryError, match="by 'ann', 'bob'"):
        session.tell(first.id, 5, annotator="carl")
    (label,) = session.labels()
    assert label.transitions == (3.0, 3.5)
    assert label.spread == 4.0
    assert session.status().annotators == {"ann": 1, "bob": 1}
    session.retract(first.id, annotator="ann")
    assert session.labels() == []
    assert session.ask(annotator="bob").id == other.id, "he has answered the first one"
    assert session.ask(annotator="carl").id == first.id
    session.tell(first.id, 5, annotator="carl")
    assert session.labels()[0].spread == 0


def test_two_annotators_answer_everything_twice():
    session = LabellingSession(town(), "guided", 3, answers_per_query=2, seed=3)
    ann = answer_with(session, 1, annotator="ann")
    assert not session.status().done
    assert answer_with(session, 3, annotator="bob") == ann
    assert session.status().done
    assert {label.spread for label in session.labels()} == {2.0}
    np.testing.assert_array_equal(session.rewards, 2)


def test_strategies_that_ask_the_evaluator_are_refused_by_name():
    for name in agents.AGENTS:
        when = agents.make(name).taxonomy.evaluator
        if when != "never":
            with pytest.raises(StrategyError, match=f"'{name}' .* the evaluator"):
                LabellingSession(town(), name, 2)
    with pytest.raises(OptionTypeError, match="an agent"):
        LabellingSession(town(), Stranger, 2)
    with pytest.raises(UnknownNameError, match="Did you mean 'uniform'"):
        LabellingSession(town(), "unifrom", 2)


def test_names_need_the_registry_of_agents(monkeypatch):
    monkeypatch.setattr("selectenv.labelling.strategy.entry_points", lambda group: ())
    with pytest.raises(ExtensionError, match=r"selectenv\.strategies"):
        LabellingSession(town(), "uniform", 2)
    assert LabellingSession(town(), agents.make("uniform"), 2).ask() is not None


def test_a_strategy_that_chooses_badly_is_named():
    class Stubborn(Stranger):
        def select(self, obs, info, rng):
            return 0

    session = LabellingSession(town(), Stubborn(), 2)
    session.tell(session.ask().id, 1)
    with pytest.raises(StrategyError, match="stranger must choose 1 different states"):
        session.ask()


def test_arguments_are_checked(tree):
    with pytest.raises(DatasetError, match="has rewards"):
        LabellingSession(tree.dataset, "uniform", 2)
    with pytest.raises(UnknownNameError, match="Did you mean 'gamma'"):
        LabellingSession(town(), "uniform", 2, gama=0.9)
    with pytest.raises(OptionError, match="does not use scale"):
        LabellingSession(town(), "uniform", 2, scale="paper")
    with pytest.raises(OptionError, match="leave out warm_start"):
        LabellingSession(town(), "uniform", 2, learner="iql", warm_start=True)
    with pytest.raises(OptionError, match="no rewards"):
        LabellingSession(town(), "uniform", 2, impute="dataset-min")
    few = selectenv.make_problem("CliffWalk", dataset_size=30, cache=False).dataset
    with pytest.warns(BudgetWarning, match="reduced to"):
        session = LabellingSession(few.without_rewards, "uniform", 30)
    assert session.budget == few.labelable.sum()
    session = LabellingSession(town(), "uniform", 2)
    with pytest.raises(OptionError, match="printable"):
        session.ask(annotator="a\nb")
    with pytest.raises(NoEvaluatorError):
        session.problem.performance([0])


def test_bounds_and_curve(tree):
    dataset, budget = tree.dataset, 31
    session = LabellingSession(dataset.without_rewards, "terminal-guided", budget, unseen="exclude")
    with pytest.raises(OptionError, match="give its ends, low and high"):
        session.curve()
    with pytest.raises(OptionError, match="both low and high"):
        session.bounds(low=0)
    low, high = float(dataset.hidden_reward.min()), float(dataset.hidden_reward.max())
    assert not session.should_stop(0.5, low, high)
    session.bounds(low, high)
    regrets = [session.bounds().regret]
    while query := session.ask():
        session.tell(query.id, truth(dataset, query))
        regrets.append(session.bounds().regret)
    curve = session.curve()
    assert [point.regret for point in curve] == regrets
    assert [point.labels for point in curve] == list(range(budget + 1))
    assert [point.id for point in curve] == [None, *(label.id for label in session.labels())]
    assert all(after.upper <= before.upper + 1e-9 for before, after in pairwise(curve))
    assert regrets[-1] == 0
    assert session.should_stop(regret=0)
    last = session.undo()
    assert session.curve() == curve[:-1]
    session.tell(last, 0)
    assert session.curve()[:-1] == curve[:-1]
    session.retract(curve[1].id)
    assert session.curve()[0] == curve[0]
    per_state = session.bounds(np.full(31, low), np.full(31, high))
    assert per_state == session.bounds(low, high)
    with pytest.raises(OptionError, match="is not in it"):
        session.bounds(0, 0)
    assert session.reward_range == ([low], [high]), "a range that is refused is not used"


def test_the_range_of_rewards_is_stored_on_request_only(tmp_path):
    path = tmp_path / "labels.sqlite"
    with LabellingSession(town(), "terminal", 2, path, reward_range=(-1, 1)) as session:
        stored = session.bounds()
        assert session.bounds(-2, 2).upper == pytest.approx(2 * stored.upper)
        assert session.reward_range == ([-2.0], [2.0]), "later calls use the same range"
        assert session.curve()[0].upper == session.bounds().upper
        with LabellingSession.open(path) as other:
            assert other.reward_range == ([-1.0], [1.0])
            other.set_reward_range([0, 0, 0], 3)
        assert session.reward_range == ([-2.0], [2.0])
    with LabellingSession.open(path) as session:
        assert session.reward_range == ([0.0, 0.0, 0.0], [3.0])
        session.tell(session.ask().id, 1)
        with pytest.raises(OptionError, match="known reward 1 is not in it"):
            session.set_reward_range(2, 3)
    with pytest.raises(OptionError, match="known reward 1 is not in it") as refused:
        LabellingSession(town(), "terminal", 2, path, reward_range=(2, 3))
    assert list(tmp_path.iterdir()) == [path], "the file is closed, although the error still refers to the session"
    assert refused.value.__traceback__ is not None
    with LabellingSession(town(), "terminal", 2, path) as session:
        assert session.reward_range == ([0.0, 0.0, 0.0], [3.0]), "it stays unless another one is given"
    with LabellingSession(town(), "terminal", 2, path, reward_range=(-5, 5)) as session:
        assert session.reward_range == ([-5.0], [5.0])


def test_policies_are_saved_and_loaded(tmp_path):
    session = LabellingSession(town(), "terminal", 2)
    answer_with(session, 1)
    policy = session.policy()
    loaded = StatePolicy.load(policy.save(tmp_path / "policy.npz"))
    assert list(loaded.rows()) == list(policy.rows())
    assert loaded.action("home") == policy.action("home")
    lines = policy.save(tmp_path / "policy.csv").read_text().splitlines()
    assert lines[0] == "state,action,probability,value,labelled"
    assert len(lines) == 1 + 3 * 2
    frame = policy.to_frame()
    assert frame.columns.tolist() == lines[0].split(",")
    assert frame.groupby("state")["probability"].sum().tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(OptionError, match=r"\.npz or \.csv"):
        policy.save(tmp_path / "policy.txt")


def test_the_states_that_were_asked_about():
    session = LabellingSession(town(), "guided", 3)
    assert session.asked() == []
    first = session.ask().id
    session.tell(first, 1)
    second = session.ask().id
    assert session.asked() == [first, second]
