"""States that are images: packing, deduplication, collection, evaluation."""

import contextlib
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given
from hypothesis import strategies as st
from stable_baselines3.common.env_checker import check_env as sb3_check_env

import agents
import selectenv
from experiments.training import expert_returns
from selectenv import datasets
from selectenv.datasets import images
from selectenv.datasets import minatar_collection as play
from selectenv.datasets import storage as files
from selectenv.datasets.minatar_collection import collect_play, play_spec
from selectenv.domains.minatar.experts import load_expert
from selectenv.domains.minatar.games import GAMES, Games, MinAtarWorld, stream_keys
from selectenv.errors import (
    DatasetError,
    DatasetFileError,
    LongEpisodeWarning,
    OptionError,
    ResourceError,
    UnknownNameError,
    UnseenStatesWarning,
)
from selectenv.evaluation import GameReturns, game_returns, played_episodes
from selectenv.io import resources
from selectenv.kernels.action_draws import draw_actions
from selectenv.kernels.network.packed_images import hash_rows, pack, unpack
from selectenv.policies import PolicyList, TablePolicies, TablePolicy

BREAKOUT = MinAtarWorld("Breakout")
SMALL = {"dataset_size": 3_000, "cache": False}


def data_of(world=BREAKOUT, size=3_000, share=0.5, mixture="all", seed=0, expert="published"):
    loaded = load_expert(world, expert)
    spec = play_spec(world, expert_share=share, mixture=mixture, expert=loaded, size=size, seed=seed)
    return collect_play(world, spec, loaded)


@given(st.integers(0, 10_000), st.sampled_from([(10, 10, 4), (10, 10, 7), (10, 10, 10), (3, 5, 1)]))
def test_packing_loses_nothing(seed, shape):
    found = np.random.default_rng(seed).random((6, *shape)) < 0.3
    words = pack(found)
    assert words.dtype == np.uint64
    np.testing.assert_array_equal(unpack(words, shape), found)


@given(st.integers(0, 10_000))
def test_deduplicating_agrees_with_numpy(seed):
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 3, (40, 2)).astype(np.uint64)
    ids, number, known, salt = images.deduplicate(words)
    distinct, inverse = np.unique(words, axis=0, return_inverse=True)
    assert len(ids) == len(distinct)
    assert (np.diff(ids) > 0).all()
    assert (ids >= 0).all()
    np.testing.assert_array_equal(known[number], words)
    pairs = set(zip(number.tolist(), inverse.ravel().tolist(), strict=True))
    assert len(pairs) == len(distinct)  # one to one
    np.testing.assert_array_equal(hash_rows(words, np.uint64(salt)), ids[number])


def test_a_hash_with_collisions_is_replaced(monkeypatch):
    words = np.arange(20, dtype=np.uint64).reshape(10, 2)

    def weak(rows, salt):
        return hash_rows(rows, salt) if salt >= 2 else np.zeros(len(rows), np.int64)

    monkeypatch.setattr(images, "hash_rows", weak)
    ids, _, _, salt = images.deduplicate(words)
    assert (len(ids), salt) == (10, 2)
    monkeypatch.setattr(images, "hash_rows", lambda rows, salt: np.zeros(len(rows), np.int64))
    with pytest.raises(DatasetError, match="have the same hash"):
        images.deduplicate(words)


@pytest.mark.parametrize("name", GAMES)
def test_data_are_a_walk_through_the_game(name):
    """The game, played again with the same actions, shows the images and pays the rewards of the data."""
    world, size = MinAtarWorld(name, horizon=40), 5_000
    data = data_of(world, size)
    steps = -(-size // play.GAMES_AT_ONCE)
    assert len(data) == size
    assert data.images is not None
    assert data.images.shape == world.shape
    identity = [value for key, value in data.spec.items() if key not in ("world", "seed")]
    games = Games(world, stream_keys(play.GAMES_AT_ONCE, 0, "dataset", *identity))
    columns = {name: getattr(data, name) for name in ("state", "action", "next_state", "terminated", "truncated")}
    whole = [i for i in range(play.GAMES_AT_ONCE) if (i + 1) * steps <= size]
    for step in range(steps):
        at = np.array(whole) * steps + step
        np.testing.assert_array_equal(data.images[columns["state"][at]], games.images[whole])
        actions = np.zeros(len(games), np.int64)
        actions[whole] = columns["action"][at]
        moves = games.step(actions)
        np.testing.assert_array_equal(data.hidden_reward[at], moves.reward[whole])
        np.testing.assert_array_equal(columns["terminated"][at], moves.terminated[whole])
        if step < steps - 1:
            np.testing.assert_array_equal(columns["truncated"][at], moves.truncated[whole])
        following = columns["next_state"][at]
        known = following >= 0
        np.testing.assert_array_equal(data.images[following[known]], moves.entered[whole][known])
        assert not known[moves.terminated[whole]].any()
    ends = data.terminated | data.truncated
    np.testing.assert_array_equal(data.episode_start, np.concatenate([[True], ends[:-1]]))
    assert ends[-1]
    continues = ~ends[:-1]
    np.testing.assert_array_equal(data.next_state[:-1][continues], data.state[1:][continues])
    assert (data.visits > 0).all()


def test_the_mixture_follows_the_expert_as_often_as_it_says():
    expert = load_expert(BREAKOUT)
    for share, mixture, low, high in ((1.0, "all", 1, 1), (0.0, "non-expert", 0, 0), (0.5, "all", 0.56, 0.61)):
        data = data_of(size=6_000, share=share, mixture=mixture)
        followed = (expert.actions(data.images[data.state]) == data.action).mean()
        assert low <= followed <= high
    spec = play_spec(BREAKOUT, expert_share=0.0, mixture="all", expert=None, size=900, seed=0)
    counts = np.bincount(collect_play(BREAKOUT, spec, None).action, minlength=6)
    assert counts.min() > 110


def test_the_same_spec_gives_the_same_data():
    one, same, other = data_of(size=700), data_of(size=700), data_of(size=700, seed=1)
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert len(data_of(size=3)) == 3  # fewer than there are games


def test_images_survive_a_file_and_are_mapped(tmp_path, monkeypatch):
    data = data_of(size=900)
    path = datasets.save(data, tmp_path / "breakout.npz")
    for limit in (1 << 20, 0):
        monkeypatch.setattr(files, "MAPPED_BYTES", limit)
        back = datasets.load(path)
        assert back.fingerprint == data.fingerprint
        assert back.spec == data.spec
        np.testing.assert_array_equal(back.images[[0, 5]], data.images[[0, 5]])
        mapped = isinstance(back.state.base, np.memmap)
        assert mapped == (limit == 0)
    assert back.state.flags.aligned
    with np.load(path, allow_pickle=False) as plain:  # it is an ordinary .npz file
        np.testing.assert_array_equal(plain["images"], data.images.words)
    content = bytearray(path.read_bytes())
    where = content.find(data.images.words.tobytes()[:64])
    content[where] ^= 1
    path.write_bytes(content)
    with pytest.raises(DatasetFileError, match=r"damaged"):
        datasets.load(path)
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DatasetFileError):
        datasets.load(path)


def test_states_are_numbers_with_images():
    data = data_of(size=900)
    for number in (0, data.n_states - 1):
        image = data.images[number]
        assert image.shape == BREAKOUT.shape
        assert data.images.find(data.ids, image[None])[0] == number
    assert data.images.find(data.ids, np.ones((1, *BREAKOUT.shape), bool))[0] == -1
    np.testing.assert_array_equal(data.numbers(data.ids[[3, 1]]), [3, 1])
    with pytest.raises(DatasetError, match="need 7 words"):
        images.Images(data.images.words[:, :3], BREAKOUT.shape)


def test_too_little_room_is_said_before_the_work(monkeypatch):
    monkeypatch.setattr(resources, "available_memory", lambda: 10 * 2**20)
    with pytest.raises(
        ResourceError, match=r"1,000,000 transitions of Seaquest needs [\d,]+ MiB of memory; 10 MiB are"
    ):
        selectenv.make_problem("Seaquest", scale="paper", cache=False, expert_share=0.0)
    monkeypatch.undo()
    monkeypatch.setattr(resources.shutil, "disk_usage", lambda place: type("Usage", (), {"free": 2**20}))
    with pytest.raises(ResourceError, match="on disk"):
        selectenv.make_problem("Breakout", dataset_size=77_777)
    assert len(selectenv.make_problem("Breakout", **SMALL).dataset) == 3_000  # nothing is written, nothing is needed
    assert resources.available_memory() is None or resources.available_memory() > 0


def plain_returns(world, data, policy, keys):
    """One game after the other, straight from MinAtar, states told apart by their bytes."""
    numbers = {image.tobytes(): i for i, image in enumerate(data.images[:])}
    totals = []
    for key in keys:
        game = world.new_game()
        game.seed(key.view(np.uint32))
        game.reset()
        total, over, step = 0.0, False, 0
        while not over:
            number = numbers.get(game.state().tobytes())
            chances = np.full(policy.shape[1], np.nan) if number is None else policy[number]
            action = draw_actions(chances[None], key[:1], step)[0]
            reward, over = game.act(world.action_numbers[action])
            total, step = total + reward, step + 1
        totals.append(total)
    return totals


def test_evaluation_agrees_with_plain_games_and_does_not_depend_on_the_batch():
    data = data_of()
    rng = np.random.default_rng(0)
    policies = rng.dirichlet(np.ones(6) * 0.2, (3, data.n_states))
    engine = GameReturns(BREAKOUT, data, 6, seed=3)
    together, steps = engine.episode_returns(PolicyList([TablePolicy(policy) for policy in policies]))
    assert steps[0] > steps[1] >= 0
    for policy, returns in zip(policies, together, strict=True):
        np.testing.assert_array_equal(engine.episode_returns(PolicyList([TablePolicy(policy)]))[0][0], returns)
        assert plain_returns(BREAKOUT, data, policy, stream_keys(6, 3, "evaluation")) == returns.tolist()
    lanes = TablePolicies(np.ascontiguousarray(np.moveaxis(policies, 0, -1)[None]), 3)
    np.testing.assert_array_equal(engine.episode_returns(lanes)[0], together)
    halved, _ = engine.episode_returns(lanes, 0.5)
    assert (halved <= together).all()


@given(st.integers(0, 10_000))
def test_actions_are_drawn_in_proportion(seed):
    rng = np.random.default_rng(seed)
    policy = rng.dirichlet(np.ones(4))
    policy[rng.integers(4)] = 0.0
    policy /= policy.sum()
    games = 4_000
    keys = rng.integers(2**64, size=games, dtype=np.uint64)
    for chances, expected in ((policy, policy), (np.full(4, np.nan), np.full(4, 0.25))):
        drawn = draw_actions(np.tile(chances, (games, 1)), keys, 9)
        shares = np.bincount(drawn, minlength=4) / games
        np.testing.assert_allclose(shares, expected, atol=5 * 0.5 / games**0.5)
        assert shares[expected == 0].sum() == 0


def test_a_table_that_meets_new_states_only_says_so():
    problem = selectenv.make_problem("Asterix", learner="uds", dataset_size=300, cache=False, rollouts=4)
    with pytest.warns(UnseenStatesWarning, match=r"\d+ % of the images met in Asterix are not in the data"):
        problem.performance([0])


@pytest.fixture(scope="module")
def breakout():
    return selectenv.make_problem("Breakout", **SMALL)


def test_threads_share_an_evaluator(breakout):
    masks = np.random.default_rng(1).random((12, breakout.n_states)) < 0.4
    expected = [breakout.with_calls().score(mask) for mask in masks]
    fresh = selectenv.make_problem("Breakout", **SMALL)
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda mask: fresh.with_calls().score(mask), masks)) == expected


def test_performance_is_a_function_of_the_label_set(breakout):
    rng = np.random.default_rng(0)
    masks = rng.random((40, breakout.n_states)) < 0.5
    many = breakout.performance_many(masks)
    for i in (0, 17, 39):
        assert breakout.with_calls().performance(masks[i]) == many[i]
    none, full = breakout.performance([]), breakout.performance(np.ones(breakout.n_states, bool))
    assert none < full


def test_behaviour_cloning_is_the_adapted_rule_without_labels():
    problem = selectenv.make_problem("Breakout", learner="adapted", **SMALL)
    np.testing.assert_allclose(problem.learn([]).table, problem.dataset.action_frequencies)


def test_breakout_passes_the_checkers_and_plays_every_heuristic():
    env = gym.make("RewardSelection-Breakout-v0", budget=0.15, **SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)
        sb3_check_env(env.unwrapped)
    inner = env.unwrapped
    env.reset(seed=0)
    assert inner.budget == int(0.15 * inner.problem.n_states)
    assert inner.labels_to_refit == int(0.02 * inner.problem.n_states)
    heuristics = [name for name in agents.AGENTS if agents.make(name).taxonomy.training == "none"]
    assert len(heuristics) == 12
    for name in heuristics:
        agent = agents.make(name)
        agent.train(env)
        episode = agents.play(env, agent, seed=1)
        assert len(set(episode.labels.tolist())) == inner.budget
        assert episode.performance >= 0
        assert episode.asked == 0 or name == "adaptive-mixture"


def test_searches_run_on_images():
    env = gym.make("RewardSelection-Breakout-v0", budget=0.3, **SMALL)
    full = env.unwrapped.problem.score(np.ones(env.unwrapped.problem.n_states, bool))
    reduced = agents.make("reduced-brute-force", sizes="largest")
    reduced.train(env)
    assert agents.play(env, reduced).performance == full  # only rewards matter under UDS
    es = agents.make("es-1000", iterations=2, population=12)
    es.train(env)
    assert es.training_calls.cost == 24
    assert agents.play(env, es).performance == es.memory["performance"]
    assert es.memory["performance"] >= 0.5 * full


@pytest.mark.parametrize("name", ["Freeway", "Seaquest", "Asterix"])
def test_the_other_games_can_be_made(name):
    env = gym.make(selectenv.env_id(name), budget=5, labels_per_refit=5, rollouts=2, dataset_size=400, cache=False)
    _, info = env.reset(seed=0)
    assert len(info["action_mask"]) == env.unwrapped.problem.n_states
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenStatesWarning)  # so few data know next to nothing
        *_, terminated, _, info = env.step(np.arange(5))
    assert terminated
    assert info["performance"] >= 0


@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
def test_the_first_labelled_images_are_drawn(mode):
    env = gym.make("RewardSelection-Breakout-v0", budget=30, render_mode=mode, **SMALL)
    env.reset(seed=0)
    env.step(np.arange(30))
    drawn = env.render()
    if mode == "ansi":
        assert "30 of" in drawn
        assert "DDDDD" in drawn  # bricks
        assert drawn.count("A") >= 6  # a paddle in each image
    else:
        assert drawn.ndim == 3
        assert drawn.std() > 0


def test_options_that_make_no_sense():
    with pytest.raises(UnknownNameError, match="scale"):
        selectenv.make_problem("Breakout", scale="huge")
    with pytest.raises(OptionError, match="only one"):
        selectenv.make_problem("Breakout", scale="paper", dataset_size=10)
    with pytest.raises(OptionError, match="for tabular worlds pass dataset_size instead"):
        selectenv.make_problem("Tree", scale="paper")
    with pytest.raises(OptionError, match='its evaluator is "rollout"'):
        selectenv.make_problem("Breakout", evaluator="exact", **SMALL)
    with pytest.raises(DatasetError, match="no images of Breakout"):
        selectenv.make_problem("Breakout", dataset=selectenv.from_arrays([0], [0], [0], [True], [1.0]))
    with pytest.raises(UnknownNameError, match="Did you mean 'sticky'"):
        selectenv.make_problem("Breakout", stiky=0.0)
    with pytest.raises(OptionError, match="keep the number of states"):
        gym.make("RewardSelection-Breakout-v0", dataset_seed=None, dataset_size=900).reset(seed=2)


def test_a_world_of_ones_own_settings():
    calm = selectenv.make_problem("Breakout", sticky=0.0, **SMALL)
    assert (
        calm.dataset.spec["world_fingerprint"]
        != selectenv.make_problem("Breakout", **SMALL).dataset.spec["world_fingerprint"]
    )
    same = selectenv.make_problem(MinAtarWorld("Breakout", sticky=0.0), **SMALL)
    assert same.dataset.fingerprint == calm.dataset.fingerprint


@pytest.mark.parametrize(("name", "fewer"), [("Breakout", 3), ("Freeway", 3), ("Seaquest", 6), ("Asterix", 5)])
def test_every_game_has_six_actions_or_the_minimal_set(name, fewer):
    options = {"dataset_size": 300, "cache": False, "labels_per_refit": 10_000}
    large, small = (
        gym.make(selectenv.env_id(name), **options, **given).unwrapped.problem.dataset
        for given in ({}, {"actions": "minimal"})
    )
    assert (large.n_actions, small.n_actions) == (6, fewer)
    assert large.action.max() == 5
    with pytest.raises(UnknownNameError, match="unknown action set 'most'; allowed: all, minimal"):
        selectenv.make_problem(name, actions="most", **SMALL)
    with pytest.raises(UnknownNameError, match="unknown option 'actions'"):
        selectenv.make_problem("Tree", actions="all")
    if fewer < 6:
        with pytest.raises(DatasetError, match=f"has 6 actions and {name} with actions='minimal' has {fewer}"):
            selectenv.make_problem(name, actions="minimal", dataset=large)


def test_random_play_has_the_published_number_of_states():
    problem = selectenv.make_problem("Breakout", expert_share=0.0, scale="paper", cache=False)
    assert len(problem.dataset) == 1_000_000
    assert abs(problem.n_states - 3_535) <= 150


class Endless(Games):
    """Games that never end."""

    def step(self, actions, which=None):
        result = super().step(actions, which)
        return result._replace(terminated=np.zeros_like(result.terminated))


def test_long_episodes_are_stopped_and_named(monkeypatch):
    data = data_of(size=300)
    monkeypatch.setattr(played_episodes, "EPISODE_LIMIT", 400)
    monkeypatch.setattr(game_returns, "Games", Endless)
    policies = PolicyList([TablePolicy(np.full((data.n_states, 6), 1 / 6))])
    engine = GameReturns(BREAKOUT, data, 3)
    with pytest.warns(LongEpisodeWarning, match="3 episodes of Breakout were stopped after 400 steps"):
        returns, (steps, _) = engine.episode_returns(policies)
    assert steps == 3 * 400
    assert returns.shape == (1, 3)
    monkeypatch.undo()
    truncated = GameReturns(MinAtarWorld("Breakout", horizon=5), data, 3)
    assert truncated.episode_returns(policies)[1][0] == 15  # a horizon needs no warning
    monkeypatch.setattr(expert_returns, "EPISODE_LIMIT", 400)
    monkeypatch.setattr(expert_returns, "Games", Endless)
    with pytest.warns(LongEpisodeWarning, match="2 episodes"):
        expert_returns.expert_returns(BREAKOUT, load_expert(BREAKOUT), 2, 0)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = datasets.save(data_of(size=300), tmp_path_factory.mktemp("damage") / "data.npz")
    return path, path.read_bytes()


@pytest.mark.parametrize("mapped", [1 << 20, 0])
@given(where=st.floats(0, 1), bit=st.integers(0, 7), cut=st.booleans())
def test_damage_anywhere_has_one_name(saved, mapped, where, bit, cut):
    path, content = saved
    place = min(int(where * len(content)), len(content) - 1)
    damaged = bytearray(content[:place] if cut else content)
    if not cut:
        damaged[place] ^= 1 << bit
    path.write_bytes(damaged)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what NumPy thinks of strange headers
        patch.setattr(files, "MAPPED_BYTES", mapped)
        with contextlib.suppress(DatasetFileError):  # a bit that nothing depends on may be read over
            back = datasets.load(path)
            path.write_bytes(content)
            assert back.fingerprint == datasets.load(path).fingerprint


def test_files_beyond_two_gibibytes_can_be_written(tmp_path, monkeypatch):
    data = data_of(size=300)
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1_000)
    monkeypatch.setattr(files, "MAPPED_BYTES", 0)
    back = datasets.load(datasets.save(data, tmp_path / "data.npz"))
    assert back.fingerprint == data.fingerprint
    assert isinstance(back.images.words.base, np.memmap)
