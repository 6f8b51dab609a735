"""Neural learners: the two rules, training runs and their checkpoints, and the options they reject."""

import pickle
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

import agents
import selectenv
from selectenv import worlds
from selectenv.datasets import minatar_collection as play
from selectenv.datasets.images import Images
from selectenv.domains.minatar.games import GAMES, MinAtarWorld
from selectenv.errors import (
    DatasetError,
    DivergedError,
    FileError,
    NoEvaluatorError,
    OptionError,
    PolicyError,
    UnknownNameError,
    WeightsFileError,
)
from selectenv.kernels.network.cnn import outputs
from selectenv.kernels.network.updates import Transitions
from selectenv.learners import CloningLearner, ExactLearner, IqlLearner, Settings
from selectenv.learners import training_run as training
from selectenv.learners.architectures import architecture_of
from selectenv.learners.training_run import IqlRun, train
from selectenv.policies import CloningPolicy, GreedyPolicy, LabelledPolicy, PolicyList, UniformPolicy
from selectenv.problem import SelectionProblem
from selectenv.streams import generator
from selectenv.worlds import find_row
from tests.selectenv.learners.vector_data import vector_data

TINY = {"dataset_size": 1_500, "cache": False, "rollouts": 2}
SHORT = Settings(updates=12, batch=16)


def learner_of(rule, settings=SHORT, **options):
    """Return a neural learner; the rule "none" stands for behaviour cloning."""
    if rule == "none":
        return CloningLearner(settings=settings, **options)
    return IqlLearner(rule=rule, settings=settings, **options)


def policies(learner, data, labels):
    """Return the policies of all training runs."""
    return learner.fit(data, data.all_rewards, labels).runs


def act(policy, data, numbers):
    """Return the action probabilities of a policy in states of the data."""
    return policy.probabilities(numbers, data.observations[numbers])


@pytest.fixture(scope="module")
def breakout():
    return selectenv.make_problem("Breakout", **TINY).dataset


@pytest.fixture(params=["images", "vectors"])
def data(request):
    return request.getfixturevalue("breakout") if request.param == "images" else vector_data()


def flat_weights(learner, data, labels):
    """Return all parameters of the networks behind the first policy."""
    policy = policies(learner, data, labels)[0]
    valued = policy.valued if isinstance(policy, LabelledPolicy) else policy
    return np.concatenate([part.ravel() for network in valued.networks for part in layers_of(network)])


def layers_of(network):
    """Return the layers of a network of a policy."""
    return getattr(network, "layers", network)


def rewarding(data):
    found = np.zeros(data.n_states, bool)
    found[data.state[data.hidden_reward != 0]] = True
    return found


def half(data, seed=0):
    return np.random.default_rng(seed).random(data.n_states) < 0.5


@pytest.mark.parametrize("rule", ["uds", "adapted"])
def test_labelling_everything_is_ordinary_iql(data, rule):
    """The same run, made by hand from the data with all their rewards."""
    every = np.ones(data.n_states, bool)
    found = flat_weights(learner_of(rule), data, every)
    plain = Transitions(data.state, data.action, data.next_state, data.hidden_reward.astype(np.float32))
    run = IqlRun(plain, architecture_of(data), data.n_actions, 0.99, SHORT, generator(0, "learner", 0, "weights"))
    train(run, np.arange(len(data)), SHORT, 0, "learner", 0)
    by_hand = np.concatenate([part.ravel() for network in run.action_values for part in network])
    np.testing.assert_array_equal(found, by_hand)


def test_training_twice_gives_the_same_weights(data):
    labels = half(data)
    first, again = (flat_weights(learner_of("uds"), data, labels) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (first != flat_weights(learner_of("uds", seed=1), data, labels)).any()
    assert (first != flat_weights(learner_of("uds"), data, np.ones_like(labels))).any()


@pytest.mark.parametrize("rule", ["uds", "adapted", "none"])
@pytest.mark.parametrize("stop", [1, 2, 3])
def test_resuming_is_the_same_as_never_stopping(data, rule, stop, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "STRETCH", 4)
    monkeypatch.setattr(training, "CHECKPOINT_EVERY", 4)
    labels, some = half(data), np.arange(30)
    evaluated = replace(SHORT, evaluations=4)  # after 9, 10, 11 and 12 updates

    def actions(learner):
        batch = learner.fit(data, data.all_rewards, labels).batch
        return np.stack([act(policy, data, some) for policy in batch.policies])

    undisturbed = actions(learner_of(rule, evaluated))
    assert len(undisturbed) == 4
    seen = []

    def kill(done, run):
        seen.append(done)
        if len(seen) == stop:
            raise KeyboardInterrupt

    learner = learner_of(rule, evaluated, checkpoints=tmp_path, watch=kill)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(data, data.all_rewards, labels)
    again = replace(learner, watch=lambda done, run: seen.append(done))
    np.testing.assert_array_equal(actions(again), undisturbed)
    watched = [4, 8, 12] * (2 if rule == "adapted" else 1)
    watched.insert(stop, watched[stop - 1])  # only the callback that was interrupted is repeated
    assert seen == watched
    for run in (training.IqlRun, training.CloningRun):
        monkeypatch.setattr(run, "advance", lambda *_: pytest.fail("trained again"))
    np.testing.assert_array_equal(actions(learner_of(rule, evaluated, checkpoints=tmp_path)), undisturbed)


def test_checkpoints_of_other_runs_are_refused(data, tmp_path):
    labels = half(data)
    policies(learner_of("uds", checkpoints=tmp_path), data, labels)
    (path,) = tmp_path.iterdir()
    policies(learner_of("none", checkpoints=tmp_path), data, labels)
    (other,) = set(tmp_path.iterdir()) - {path}
    other.replace(path)
    with pytest.raises(WeightsFileError, match="not a checkpoint of this training run"):
        policies(learner_of("uds", checkpoints=tmp_path), data, labels)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(WeightsFileError, match="damaged"):
        policies(learner_of("uds", checkpoints=tmp_path), data, labels)


def test_a_diverging_run_stops(data, tmp_path):
    diverging = learner_of("uds", replace(SHORT, rate=1e30), checkpoints=tmp_path)
    with pytest.raises(DivergedError, match="smaller learning rate"):
        policies(diverging, data, np.ones(data.n_states, bool))
    assert list(tmp_path.iterdir()) == []


def test_uds_imputes_rewards(data):
    labels = half(data)
    seen = labels[data.state]
    for impute in (0.0, -0.5):
        transitions, pool = learner_of("uds", impute=impute)._transitions(data, data.all_rewards, labels)
        np.testing.assert_array_equal(transitions.reward[seen], data.hidden_reward[seen].astype(np.float32))
        assert (transitions.reward[~seen] == np.float32(impute)).all()
        assert len(pool) == len(data)
        np.testing.assert_array_equal(transitions.next_state, data.next_state)


def test_the_adapted_rule_learns_only_from_labelled_states(data):
    labels = half(data)
    transitions, pool = learner_of("adapted")._transitions(data, data.all_rewards, labels)
    assert labels[data.state[pool]].all()
    assert len(pool) == np.count_nonzero(labels[data.state])
    continues = transitions.next_state >= 0
    assert labels[transitions.next_state[continues]].all()
    lost = ~continues & (data.next_state >= 0)
    assert not labels[data.next_state[lost]].any()


def test_the_adapted_policy_imitates_the_data_in_unlabelled_states(data):
    labels = half(data)
    learner = learner_of("adapted")
    (policy,) = policies(learner, data, labels)
    every, known, unknown = np.arange(data.n_states), np.flatnonzero(labels), np.flatnonzero(~labels)
    chances = act(policy, data, every)
    np.testing.assert_array_equal(chances[labels], act(policy.valued, data, known))
    np.testing.assert_array_equal(chances[~labels], act(policy.otherwise, data, unknown))
    new, nowhere = data.observations[np.arange(5)], np.full(5, -1)
    np.testing.assert_array_equal(policy.probabilities(nowhere, new), policy.otherwise.probabilities(nowhere, new))
    learned = learner.fit(data, data.all_rewards, labels)
    assert (learned.q[~labels] == 0).all()
    np.testing.assert_allclose(learned.table, chances, rtol=1e-4, atol=1e-6)
    (without,) = policies(learner_of("adapted"), data, np.zeros_like(labels))
    np.testing.assert_array_equal(act(without, data, every), act(without.otherwise, data, every))
    unrewarding = np.zeros_like(labels)
    unrewarding[np.flatnonzero(data.labelable & ~rewarding(data))[:20]] = True
    (indifferent,) = policies(learner_of("adapted"), data, unrewarding)  # every action is worth 0, as for the table
    np.testing.assert_allclose(act(indifferent, data, np.flatnonzero(unrewarding)), 1 / data.n_actions)
    table = ExactLearner("adapted").fit(data, data.all_rewards, unrewarding).table
    np.testing.assert_allclose(table[unrewarding], 1 / data.n_actions)


def test_labels_whose_reward_equals_the_imputed_one_are_dropped(data):
    """Under UDS with imputed reward 0, labelling the states with a reward is the same as labelling everything."""
    calls = []
    learner = learner_of("uds", watch=lambda done, run: calls.append(done))
    nothing, telling = np.zeros(data.n_states, bool), rewarding(data)
    assert isinstance(policies(learner, data, nothing)[0], UniformPolicy)
    assert isinstance(policies(learner, data, ~telling)[0], UniformPolicy)
    learned = learner.fit(data, data.all_rewards, ~telling)
    assert (learned.q == 0).all()
    np.testing.assert_allclose(learned.table, 1 / data.n_actions)
    assert calls == []
    assert policies(learner, data, telling)[0] is policies(learner, data, ~nothing)[0]
    assert calls == [12]


def test_behaviour_cloning_needs_no_labels(data):
    draws, greedy = (CloningLearner(settings=SHORT, most_likely=most_likely) for most_likely in (False, True))
    none, every = np.zeros(data.n_states, bool), np.ones(data.n_states, bool)
    assert policies(draws, data, none)[0] is policies(draws, data, every)[0]
    chances, likeliest = (act(policies(learner, data, none)[0], data, np.arange(20)) for learner in (draws, greedy))
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_array_equal(likeliest.argmax(axis=1), chances.argmax(axis=1))
    assert set(np.unique(likeliest)) <= {0.0, 1.0}


def test_cloning_finds_the_actions_of_the_data(data):
    """After some more updates the most frequent action of the data is mostly the likeliest one."""
    learner = CloningLearner(settings=Settings(updates=500, batch=64))
    (policy,) = policies(learner, data, np.zeros(data.n_states, bool))
    often = data.visits >= 10
    chances = act(policy, data, np.flatnonzero(often))
    agree = chances.argmax(axis=1) == data.action_frequencies[often].argmax(axis=1)
    assert np.average(agree, weights=data.visits[often]) > 0.8


def test_several_runs_are_averaged(breakout):
    labels = half(breakout)
    both = learner_of("uds", training_runs=2)
    first, second = policies(both, breakout, labels)
    alone = policies(learner_of("uds"), breakout, labels)[0]
    some = np.arange(50)
    one, same, other = (p.values_and_probabilities(some, breakout.images[some])[0] for p in (first, alone, second))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    learned = both.fit(breakout, breakout.all_rewards, labels)
    np.testing.assert_allclose(learned.q[:50], (one + other) / 2, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(learned.table.sum(axis=1), 1)
    evaluator = selectenv.make_problem("Breakout", **TINY).evaluator
    problem = SelectionProblem(breakout, both, evaluator)
    returns = [evaluator.evaluate(policy) for policy in (first, second)]
    np.testing.assert_array_equal(evaluator.returns(PolicyList([first, second])), returns)
    assert problem.performance(labels) == pytest.approx(np.mean(returns))


def test_evaluations_are_spread_over_the_last_part_of_a_run(data):
    assert Settings(updates=50, evaluations=10).evaluated_at == (32, 34, 36, 38, 40, 42, 44, 46, 48, 50)
    assert Settings(updates=7).evaluated_at == (7,)
    setting = replace(SHORT, evaluations=3)
    assert setting.evaluated_at == (9, 11, 12)
    learned = learner_of("uds", setting).fit(data, data.all_rewards, np.ones(data.n_states, bool))
    np.testing.assert_array_equal(learned.updates, [9, 11, 12])
    plain = Transitions(data.state, data.action, data.next_state, data.hidden_reward.astype(np.float32))
    rows = generator(0, "learner", 0, "batches", 0).integers(len(data), size=(training.STRETCH, 16))
    for policy, updates in zip(learned.batch.policies, setting.evaluated_at, strict=True):
        run = IqlRun(plain, architecture_of(data), data.n_actions, 0.99, SHORT, generator(0, "learner", 0, "weights"))
        run.advance(rows[:updates], 0)
        for mine, by_hand in zip(policy.networks, run.action_values, strict=True):
            for part, other in zip(layers_of(mine), by_hand, strict=True):
                np.testing.assert_array_equal(part, other)


def test_the_performance_is_the_mean_of_the_learning_curve(breakout):
    options = {"dataset": breakout, "learner": "iql", "updates": 12, "rollouts": 2, "learner_runs": 2}
    labels = half(breakout)
    problem = selectenv.make_problem("Breakout", evaluations=3, **options)
    performance = problem.performance(labels)
    updates, returns = problem.learning_curve(labels)
    assert updates.tolist() == [9, 11, 12]
    assert returns.shape == (2, 3)
    assert performance == returns.mean()
    assert returns[:, -1].mean() == selectenv.make_problem("Breakout", **options).performance(labels)
    assert (problem.evaluator.counts.asked, problem.evaluator.counts.computed) == (2, 1)
    again = selectenv.make_problem("Breakout", evaluations=3, **options)
    np.testing.assert_array_equal(again.learning_curve(labels).returns, returns)
    none = problem.learning_curve([])  # nothing is trained
    assert none.returns.shape == (2, 3)


def test_the_learning_curve_of_a_table_is_one_point():
    problem = selectenv.make_problem("Tree", dataset_size=500, cache=False)
    updates, returns = problem.learning_curve([1, 2])
    assert updates.tolist() == [0]
    assert returns.tolist() == [[problem.performance([1, 2])]]


def test_many_sets_are_the_sets_one_by_one(breakout):
    options = {**TINY, "learner": "iql", "updates": 12}
    masks = np.stack([half(breakout, seed) for seed in range(3)])
    many = selectenv.make_problem("Breakout", **options).performance_many(masks)
    problem = selectenv.make_problem("Breakout", **options)
    assert many.tolist() == [problem.performance(mask) for mask in masks]
    twice = selectenv.make_problem("Breakout", **options)
    assert twice.performance(masks[0]) == many[0]
    assert twice.performance_many(np.concatenate([masks, masks])).tolist() == [*many, *many]
    assert (twice.evaluator.counts.asked, twice.evaluator.counts.computed) == (7, 3)
    batch = problem.learner.fit_many(breakout, breakout.all_rewards, masks)
    assert len(batch) == 3
    every = np.arange(breakout.n_states)
    tables = batch.tables(breakout.n_states, breakout.images[every])
    assert tables.shape == (3, breakout.n_states, breakout.n_actions, 1)
    np.testing.assert_array_equal(tables[1, ..., 0], problem.learn(masks[1]).table)


def test_policies_of_networks_need_a_game(breakout):
    problem = SelectionProblem(breakout, learner_of("uds"))
    with pytest.raises(NoEvaluatorError):
        problem.performance(half(breakout))
    tabular = selectenv.make_problem("Tree", dataset_size=500, cache=False)
    (policy,) = policies(learner_of("uds"), breakout, np.ones(breakout.n_states, bool))
    with pytest.raises(PolicyError, match="acts on observations"):
        tabular.evaluator.evaluate(policy)
    assert tabular.evaluator.calls == 0


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"learner": "iqll"}, UnknownNameError, "Did you mean 'iql'"),
        ({"learner": "iql", "solver": "sampled"}, OptionError, "network"),
        ({"learner": "iql", "unseen": "exclude"}, OptionError, "network"),
        ({"learner": "iql-adapted", "impute": 1.0}, OptionError, "nothing to impute"),
        ({"learner": "iql", "updates": 0}, OptionError, "updates"),
        ({"learner": "iql", "learner_runs": 0}, OptionError, "learner_runs"),
        ({"learner": "uds", "updates": 10}, OptionError, "table"),
        ({"learner": "uds", "learner_runs": 2}, OptionError, "table"),
        ({"learner": "uds", "evaluations": 2}, OptionError, "table"),
        ({"learner": "iql", "evaluations": 0}, OptionError, "evaluations"),
        ({"learner": "iql", "scale": "fats"}, OptionError, "Did you mean 'fast'"),
        ({"learner": "iql", "checkpoints": 3}, OptionError, "must be a path"),
        ({"learner": "iql", "checkpoints": "/proc/nowhere"}, FileError, "cannot be written"),
    ],
)
def test_options_that_make_no_sense(options, error, text):
    with pytest.raises(error, match=text):
        selectenv.make_problem("Breakout", **options)


def test_settings_that_train_nothing_are_refused(data):
    for wrong in ({"updates": 0}, {"batch": 0}, {"rate": 0.0}, {"expectile": 1.0}, {"target_step": 2.0}):
        with pytest.raises(OptionError):
            Settings(**wrong)
    with pytest.raises(UnknownNameError, match="Did you mean 'uds'"):
        IqlLearner(rule="udss")
    with pytest.raises(DivergedError):
        policies(learner_of("uds", Settings(updates=1, rate=1e38)), data, np.ones(data.n_states, bool))


@pytest.mark.parametrize("shape", [(8, 8, 4), (12, 12, 4), (10, 10, 15), (10, 10)])
def test_images_of_another_shape_are_refused(breakout, shape):
    words = np.zeros((breakout.n_states, -(-int(np.prod(shape)) // 64)), np.uint64)
    with pytest.raises(DatasetError, match="10 x 10 cells"):
        policies(learner_of("uds"), replace(breakout, observations=Images(words, shape)), half(breakout))


def test_a_neural_learner_can_be_pickled(data):
    learner = learner_of("uds", seed=np.int64(3))
    copied = pickle.loads(pickle.dumps(learner))
    labels = half(data)
    np.testing.assert_array_equal(flat_weights(copied, data, labels), flat_weights(learner, data, labels))


def test_a_world_is_known_by_its_object_too():
    for game in GAMES:
        assert find_row(MinAtarWorld(game)).defaults == selectenv.WORLDS[game].defaults


def test_networks_need_images():
    with pytest.raises(DatasetError, match="images"):
        selectenv.make_problem("Tree", learner="iql", dataset_size=500, cache=False)


def test_scales_set_the_training(breakout):
    fast = selectenv.make_problem("Breakout", dataset=breakout, learner="iql").learner.settings
    assert fast == Settings(100_000, 3e-4, 0.005, 0.7, 256)
    for game, updates in (("Breakout", 125_000), ("Seaquest", 125_000), ("Asterix", 75_000), ("Freeway", 25_000)):
        learning = selectenv.WORLDS[game].defaults.learning
        assert learning.settings("paper", None) == Settings(updates, 3e-4, 0.005, 0.7, 256)
        assert learning.preset("paper").transitions == 1_000_000
        assert learning.preset(None) == learning.preset("fast") == learning.fast
    paper = selectenv.make_problem("Breakout", dataset=breakout, learner="iql", scale="paper").learner.settings
    assert paper == Settings(125_000, 3e-4, 0.005, 0.7, 256)


def test_scales_set_the_size_of_the_data(monkeypatch):
    monkeypatch.setattr(worlds, "cached", lambda spec, gather: pytest.fail(str(spec["size"])))
    for scale, size in ((None, 1_000_000), ("fast", 1_000_000), ("paper", 1_000_000)):
        with pytest.raises(pytest.fail.Exception, match=f"^{size}$"):
            selectenv.make_problem("Asterix", scale=scale)


@pytest.mark.parametrize("game", GAMES)
def test_a_whole_episode_in_every_game(game, monkeypatch):
    """Choose, refit, train and play, in little, with a strategy that looks at what was learned."""
    monkeypatch.setattr(play, "GAMES_AT_ONCE", 4)  # long enough to earn something
    small = {"dataset_size": 2_400, "cache": False, "updates": 3, "rollouts": 2, "horizon": 500}
    env = gym.make(f"RewardSelection-{game}-v0", budget=0.5, learner="iql", **small)
    base = env.unwrapped
    assert isinstance(base.problem.learn(base.problem.dataset.labelable).policy, GreedyPolicy)
    episode = agents.play(env, agents.make("guided"), seed=0)
    assert len(episode.labels) == base.budget
    assert np.isfinite(episode.performance)
    assert episode.asked == 0
    again = agents.play(env, agents.make("guided"), seed=0)
    np.testing.assert_array_equal(episode.labels, again.labels)
    assert episode.performance == again.performance


def test_few_refits_at_the_fast_scale(breakout, monkeypatch):
    counts = []
    fit = IqlLearner.fit
    monkeypatch.setattr(IqlLearner, "fit", lambda self, *arguments: counts.append(1) or fit(self, *arguments))
    env = selectenv.make_env("Breakout", dataset=breakout, learner="iql", updates=1, rollouts=1, budget=0.5)
    agents.play(env, agents.make("visitation-on-policy"), seed=0)
    assert len(counts) <= 1 + 10  # one at reset
    finer = selectenv.make_env(
        "Breakout", dataset=breakout, learner="iql", updates=1, rollouts=1, budget=0.5, scale="paper"
    )
    assert finer.labels_to_refit < env.labels_to_refit


def test_games_whose_images_rarely_repeat_are_learned_with_networks():
    for game in ("Freeway", "Seaquest", "Asterix"):
        assert selectenv.WORLDS[game].defaults.learner == "iql"
    assert selectenv.WORLDS["Breakout"].defaults.learner == "uds"
    problem = selectenv.make_problem("Asterix", **TINY)
    assert isinstance(problem.learner, IqlLearner)


def test_greedy_policies_take_the_smaller_value_of_two_networks(breakout):
    """Ties are split uniformly."""
    (policy,) = policies(learner_of("uds"), breakout, np.ones(breakout.n_states, bool))
    some = np.arange(40)

    def values(greedy):
        return greedy.values_and_probabilities(some, breakout.images[some])[0]

    separate = [values(GreedyPolicy((network,))) for network in policy.networks]
    np.testing.assert_array_equal(values(policy), np.minimum(*separate))
    zero = GreedyPolicy(tuple(type(network)(*(0 * part for part in network)) for network in policy.networks))
    np.testing.assert_allclose(act(zero, breakout, some), 1 / breakout.n_actions)
    np.testing.assert_allclose(act(CloningPolicy(zero.networks[0]), breakout, some), 1 / breakout.n_actions)


def test_values_are_those_of_the_value_network(breakout):
    """Under the adapted rule in labelled states only; without a value network they are the largest action values."""
    labels, ends = half(breakout), []
    watched = learner_of("uds", training_runs=2, watch=lambda done, run: ends.append(run))
    learned = watched.fit(breakout, breakout.all_rewards, labels)
    networks = [run.networks["value"].layers for run in ends]
    expected = np.mean([outputs(network, breakout.images[:])[:, 0] for network in networks], axis=0, dtype=float)
    np.testing.assert_allclose(learned.values, expected, atol=1e-6)
    assert np.abs(learned.values - learned.q.max(axis=1)).max() > 1e-3
    only = GreedyPolicy(learned.runs[0].networks)
    some, images = np.arange(40), breakout.images[:40]
    np.testing.assert_array_equal(
        only.state_values(some, images), only.values_and_probabilities(some, images)[0].max(axis=1)
    )
    adapted = learner_of("adapted").fit(breakout, breakout.all_rewards, labels)
    valued = adapted.policy.valued.state_values(np.arange(breakout.n_states), breakout.images[:])
    np.testing.assert_allclose(adapted.values, np.where(labels, valued, 0.0), atol=1e-6)
    assert adapted.values.any()
    for learner, known in ((learner_of("none"), labels), (learner_of("uds"), np.zeros_like(labels))):
        assert not learner.fit(breakout, breakout.all_rewards, known).values.any()
