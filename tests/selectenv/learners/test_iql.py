"""Networks that learn from labels: what the rules mean, what a run remembers, what it refuses."""

import pickle
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

import agents
import selectenv
from selectenv import registration
from selectenv.datasets import minatar_collection as play
from selectenv.datasets.images import Pictures
from selectenv.domains.minatar.games import GAMES, MinAtarWorld
from selectenv.errors import (
    DatasetError,
    DivergedError,
    NoEvaluatorError,
    OptionError,
    UnknownNameError,
    WeightsFileError,
)
from selectenv.kernels.network.patches import find_patches
from selectenv.kernels.network.updates import Transitions
from selectenv.learners import PictureLearner, Settings, make_learner
from selectenv.learners import training_run as training
from selectenv.learners.training_run import IqlRun, train
from selectenv.policies import CloningPlayer, GreedyPlayer, LabelledPlayer, RandomPlayer
from selectenv.problem import SelectionProblem
from selectenv.streams import generator

TINY = {"dataset_size": 1_500, "cache": False, "rollouts": 2}
SHORT = Settings(updates=12, batch=16)


@pytest.fixture(scope="module")
def data():
    return selectenv.make_problem("Breakout", **TINY).dataset


def flat_weights(learner, labels):
    """Return all parameters of the networks behind the first player."""
    player = learner.players(labels)[0]
    valued = player.valued if isinstance(player, LabelledPlayer) else player
    return np.concatenate([part.ravel() for network in valued.networks for part in network])


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
    found = flat_weights(PictureLearner(data, rule, SHORT), every)
    plain = Transitions(data.state, data.action, data.next_state, data.hidden_reward.astype(np.float32))
    patches = find_patches(data.pictures.words, data.pictures.shape)
    run = IqlRun(plain, patches, 4, data.n_actions, 0.99, SHORT, generator(0, "learner", 0, "weights"))
    train(run, np.arange(len(data)), SHORT, 0, "learner", 0)
    by_hand = np.concatenate([part.ravel() for network in run.action_values for part in network])
    np.testing.assert_array_equal(found, by_hand)


def test_training_twice_gives_the_same_weights(data):
    labels = half(data)
    first, again = (flat_weights(PictureLearner(data, "uds", SHORT), labels) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (first != flat_weights(PictureLearner(data, "uds", SHORT, seed=1), labels)).any()
    assert (first != flat_weights(PictureLearner(data, "uds", SHORT), np.ones_like(labels))).any()


@pytest.mark.parametrize("rule", ["uds", "adapted", "none"])
@pytest.mark.parametrize("stop", [1, 2, 3])
def test_going_on_is_the_same_as_never_stopping(data, rule, stop, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "STRETCH", 4)
    monkeypatch.setattr(training, "CHECKPOINT_EVERY", 4)
    labels, pictures = half(data), data.pictures[np.arange(30)]
    calm = PictureLearner(data, rule, SHORT).players(labels)[0].probabilities(pictures)
    seen = []

    def kill(done, run):
        seen.append(done)
        if len(seen) == stop:
            raise KeyboardInterrupt

    learner = PictureLearner(data, rule, SHORT, checkpoints=tmp_path, watch=kill)
    with pytest.raises(KeyboardInterrupt):
        learner.players(labels)
    again = replace(learner, watch=lambda done, run: seen.append(done))
    np.testing.assert_array_equal(again.players(labels)[0].probabilities(pictures), calm)
    looks = [4, 8, 12] * (2 if rule == "adapted" else 1)
    looks.insert(stop, looks[stop - 1])  # where it was killed it looks again, and nothing else is done twice
    assert seen == looks
    for run in (training.IqlRun, training.CloningRun):
        monkeypatch.setattr(run, "advance", lambda *_: pytest.fail("trained again"))
    third = PictureLearner(data, rule, SHORT, checkpoints=tmp_path)
    np.testing.assert_array_equal(third.players(labels)[0].probabilities(pictures), calm)


def test_checkpoints_of_other_runs_are_refused(data, tmp_path):
    labels = half(data)
    PictureLearner(data, "uds", SHORT, checkpoints=tmp_path).players(labels)
    (path,) = tmp_path.iterdir()
    clone = PictureLearner(data, "none", SHORT, checkpoints=tmp_path)
    clone.players(labels)
    (other,) = set(tmp_path.iterdir()) - {path}
    other.replace(path)
    with pytest.raises(WeightsFileError, match="no checkpoint of this training run"):
        PictureLearner(data, "uds", SHORT, checkpoints=tmp_path).players(labels)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(WeightsFileError, match="damaged"):
        PictureLearner(data, "uds", SHORT, checkpoints=tmp_path).players(labels)


def test_a_run_that_goes_wild_stops(data, tmp_path):
    wild = PictureLearner(data, "uds", replace(SHORT, rate=1e30), checkpoints=tmp_path)
    with pytest.raises(DivergedError, match="smaller learning rate"):
        wild.players(np.ones(data.n_states, bool))
    assert list(tmp_path.iterdir()) == []


def test_uds_makes_up_rewards(data):
    labels = half(data)
    seen = labels[data.state]
    for impute in (0.0, -0.5):
        transitions, pool = PictureLearner(data, "uds", SHORT, impute=impute)._transitions(labels)
        np.testing.assert_array_equal(transitions.reward[seen], data.hidden_reward[seen].astype(np.float32))
        assert (transitions.reward[~seen] == np.float32(impute)).all()
        assert len(pool) == len(data)
        np.testing.assert_array_equal(transitions.next_state, data.next_state)


def test_the_adapted_rule_learns_only_from_labelled_states(data):
    labels = half(data)
    transitions, pool = PictureLearner(data, "adapted", SHORT)._transitions(labels)
    assert labels[data.state[pool]].all()
    assert len(pool) == np.count_nonzero(labels[data.state])
    goes_on = transitions.next_state >= 0
    assert labels[transitions.next_state[goes_on]].all()
    lost = ~goes_on & (data.next_state >= 0)
    assert not labels[data.next_state[lost]].any()


def test_the_adapted_player_clones_where_there_is_no_label(data):
    labels = half(data)
    learner = PictureLearner(data, "adapted", SHORT)
    (player,) = learner.players(labels)
    pictures = data.pictures[np.arange(data.n_states)]
    chances = player.probabilities(pictures)
    np.testing.assert_array_equal(chances[labels], player.valued.probabilities(pictures[labels]))
    np.testing.assert_array_equal(chances[~labels], player.otherwise.probabilities(pictures[~labels]))
    unknown = ~pictures[:5]
    np.testing.assert_array_equal(player.probabilities(unknown), player.otherwise.probabilities(unknown))
    learned = learner.learn(labels)
    assert (learned.q[~labels] == 0).all()
    np.testing.assert_array_equal(learned.policy, chances)
    (without,) = PictureLearner(data, "adapted", SHORT).players(np.zeros_like(labels))
    np.testing.assert_array_equal(without.probabilities(pictures), without.otherwise.probabilities(pictures))
    dull = np.zeros_like(labels)
    dull[np.flatnonzero(data.labelable & ~rewarding(data))[:20]] = True
    (bored,) = PictureLearner(data, "adapted", SHORT).players(dull)  # every action is worth 0, as for the table
    np.testing.assert_allclose(bored.probabilities(pictures[dull]), 1 / data.n_actions)
    table = make_learner(data, "adapted").learn(dull)
    np.testing.assert_allclose(table.policy[dull], 1 / data.n_actions)


def test_labels_that_teach_nothing_cost_nothing(data):
    """UDS with 0 knows rewards of 0 already: labelling only the states with a reward is labelling everything."""
    calls = []
    learner = PictureLearner(data, "uds", SHORT, watch=lambda done, run: calls.append(done))
    nothing, telling = np.zeros(data.n_states, bool), rewarding(data)
    assert isinstance(learner.players(nothing)[0], RandomPlayer)
    assert isinstance(learner.players(~telling)[0], RandomPlayer)
    learned = learner.learn(~telling)
    assert (learned.q == 0).all()
    np.testing.assert_allclose(learned.policy, 1 / data.n_actions)
    assert calls == []
    assert learner.players(telling) is learner.players(~nothing)
    assert calls == [12]


def test_behaviour_cloning_needs_no_labels(data):
    draws, greedy = (make_learner(data, name, settings=SHORT) for name in ("bc", "bc-greedy"))
    none, every = np.zeros(data.n_states, bool), np.ones(data.n_states, bool)
    assert draws.players(none) is draws.players(every)
    pictures = data.pictures[np.arange(20)]
    chances, likeliest = (learner.players(none)[0].probabilities(pictures) for learner in (draws, greedy))
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_array_equal(likeliest.argmax(axis=1), chances.argmax(axis=1))
    assert set(np.unique(likeliest)) <= {0.0, 1.0}


def test_cloning_finds_the_actions_of_the_data(data):
    """After some more updates the most frequent action of the data is mostly the likeliest one."""
    (player,) = PictureLearner(data, "none", Settings(updates=500, batch=64)).players(np.zeros(data.n_states, bool))
    often = data.visits >= 10
    chances = player.probabilities(data.pictures[np.flatnonzero(often)])
    agree = chances.argmax(axis=1) == data.action_frequencies[often].argmax(axis=1)
    assert np.average(agree, weights=data.visits[often]) > 0.8


def test_several_runs_are_averaged(data):
    labels = half(data)
    both = PictureLearner(data, "uds", SHORT, runs=2)
    first, second = both.players(labels)
    alone = PictureLearner(data, "uds", SHORT).players(labels)[0]
    pictures = data.pictures[np.arange(50)]
    np.testing.assert_array_equal(first.values(pictures), alone.values(pictures))
    assert (first.values(pictures) != second.values(pictures)).any()
    learned = both.learn(labels)
    np.testing.assert_allclose(learned.q[:50], (first.values(pictures) + second.values(pictures)) / 2)
    np.testing.assert_allclose(learned.policy.sum(axis=1), 1)
    engine = selectenv.make_problem("Breakout", **TINY).evaluator
    problem = SelectionProblem(data, both, engine)
    returns = [engine.player_return([player]) for player in (first, second)]
    assert problem.performance(labels) == pytest.approx(np.mean(returns))


def test_many_sets_are_the_sets_one_by_one(data):
    options = {**TINY, "learner": "iql", "updates": 12}
    masks = np.stack([half(data, seed) for seed in range(3)])
    many = selectenv.make_problem("Breakout", **options).performance_many(masks)
    problem = selectenv.make_problem("Breakout", **options)
    assert many.tolist() == [problem.performance(mask) for mask in masks]
    twice = selectenv.make_problem("Breakout", **options)
    assert twice.performance(masks[0]) == many[0]
    assert twice.performance_many(np.concatenate([masks, masks])).tolist() == [*many, *many]
    assert (twice.evaluator.counts.asked, twice.evaluator.counts.computed) == (7, 3)
    policies = problem.learner.learn_policies(masks)
    assert policies.shape == (3, data.n_states, data.n_actions, 1)
    np.testing.assert_array_equal(policies[1, ..., 0], problem.learn(masks[1]).policy)


def test_players_need_a_game(data):
    problem = SelectionProblem(data, PictureLearner(data, "uds", SHORT))
    with pytest.raises(NoEvaluatorError):
        problem.performance(half(data))
    tabular = selectenv.make_problem("Tree", dataset_size=500, cache=False)
    with pytest.raises(NoEvaluatorError, match="MinAtar"):
        tabular.evaluator.player_return([RandomPlayer(2)])


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
        ({"learner": "iql", "scale": "lapptop"}, OptionError, "Did you mean 'laptop'"),
        ({"learner": "iql", "checkpoints": 3}, OptionError, "path of a folder"),
        ({"learner": "iql", "checkpoints": "/proc/nowhere"}, OptionError, "cannot be written"),
    ],
)
def test_options_that_make_no_sense(options, error, text):
    with pytest.raises(error, match=text):
        selectenv.make_problem("Breakout", **options)


def test_runs_that_train_nothing_are_refused(data):
    for wrong in ({"updates": 0}, {"batch": 0}, {"rate": 0.0}, {"expectile": 1.0}, {"target_step": 2.0}):
        with pytest.raises(OptionError):
            Settings(**wrong)
    with pytest.raises(UnknownNameError, match="Did you mean 'uds'"):
        PictureLearner(data, "udss")
    with pytest.raises(DivergedError):
        PictureLearner(data, "uds", Settings(updates=1, rate=1e38)).players(np.ones(data.n_states, bool))


@pytest.mark.parametrize("shape", [(8, 8, 4), (12, 12, 4), (10, 10, 15), (10, 10)])
def test_pictures_of_another_shape_are_refused(data, shape):
    words = np.zeros((data.n_states, -(-int(np.prod(shape)) // 64)), np.uint64)
    with pytest.raises(DatasetError, match="10 x 10 cells"):
        PictureLearner(replace(data, pictures=Pictures(words, shape)))


def test_a_problem_with_networks_can_be_copied(data):
    learner = PictureLearner(data, "uds", SHORT, seed=np.int64(3))
    copied = pickle.loads(pickle.dumps(learner))
    labels = half(data)
    np.testing.assert_array_equal(flat_weights(copied, labels), flat_weights(learner, labels))


def test_a_world_is_known_by_its_object_too():
    for game in GAMES:
        assert registration._published(MinAtarWorld(game)) == selectenv.WORLDS[game].published


def test_networks_need_pictures():
    with pytest.raises(DatasetError, match="pictures"):
        selectenv.make_problem("Tree", learner="iql", dataset_size=500, cache=False)


def test_scales_set_the_training(data):
    laptop = selectenv.make_problem("Breakout", dataset=data, learner="iql").learner.settings
    assert laptop == Settings(10_000, 1e-3, 0.02, 0.7, 256)
    for game, updates in (("Breakout", 125_000), ("Seaquest", 125_000), ("Asterix", 75_000), ("Freeway", 25_000)):
        published = selectenv.WORLDS[game].published
        assert published.updates == updates
    paper = selectenv.make_problem("Breakout", dataset=data, learner="iql", scale="paper").learner.settings
    assert paper == Settings(125_000, 3e-4, 0.005, 0.7, 256)


@pytest.mark.parametrize("game", GAMES)
def test_a_whole_episode_in_every_game(game, monkeypatch):
    """Choose, refit, train and play, in little, with a strategy that looks at what was learned."""
    monkeypatch.setattr(play, "GAMES_AT_ONCE", 4)  # long enough to earn something
    env = gym.make(
        f"RewardSelection-{game}-v0", budget=0.5, dataset_size=2_400, cache=False, learner="iql", updates=3, rollouts=2
    )
    base = env.unwrapped
    assert isinstance(base.problem.learner.players(base.problem.dataset.labelable)[0], GreedyPlayer)
    episode = agents.play(env, agents.make("guided"), seed=0)
    assert len(episode.labels) == base.budget
    assert np.isfinite(episode.performance)
    assert episode.asked == 0
    again = agents.play(env, agents.make("guided"), seed=0)
    np.testing.assert_array_equal(episode.labels, again.labels)
    assert episode.performance == again.performance


def test_few_refits_at_the_laptops_scale(data, monkeypatch):
    counts = []
    learn = PictureLearner.learn
    monkeypatch.setattr(PictureLearner, "learn", lambda self, labels: counts.append(1) or learn(self, labels))
    env = selectenv.make_env("Breakout", dataset=data, learner="iql", updates=1, rollouts=1, budget=0.5)
    agents.play(env, agents.make("visitation-on-policy"), seed=0)
    assert len(counts) <= 1 + 10  # one at reset
    finer = selectenv.make_env(
        "Breakout", dataset=data, learner="iql", updates=1, rollouts=1, budget=0.5, scale="paper"
    )
    assert finer.labels_to_refit < env.labels_to_refit


def test_games_of_ever_new_pictures_learn_with_networks():
    for game in ("Freeway", "Seaquest", "Asterix"):
        assert selectenv.WORLDS[game].published.learner == "iql"
    assert selectenv.WORLDS["Breakout"].published.learner == "uds"
    problem = selectenv.make_problem("Asterix", **TINY)
    assert isinstance(problem.learner, PictureLearner)


def test_players_draw_what_they_say(data):
    """Two networks are asked for the smaller value; equally good actions share alike."""
    (player,) = PictureLearner(data, "uds", SHORT).players(np.ones(data.n_states, bool))
    pictures = data.pictures[np.arange(40)]
    separate = [GreedyPlayer((network,)).values(pictures) for network in player.networks]
    np.testing.assert_array_equal(player.values(pictures), np.minimum(*separate))
    zero = GreedyPlayer(tuple(type(network)(*(0 * part for part in network)) for network in player.networks))
    np.testing.assert_allclose(zero.probabilities(pictures), 1 / data.n_actions)
    flat = CloningPlayer(zero.networks[0])
    np.testing.assert_allclose(flat.probabilities(pictures), 1 / data.n_actions)
