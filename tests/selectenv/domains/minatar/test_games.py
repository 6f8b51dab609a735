"""MinAtar games side by side: their traps, their random streams, their experts."""

import contextlib
import sys
from importlib import metadata

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from selectenv.domains.minatar.experts import FOLDER, NetworkExpert, TableExpert, load_expert
from selectenv.domains.minatar.games import ALL_ACTIONS, GAMES, MINIMAL_ACTIONS, Games, MinAtarWorld, stream_keys
from selectenv.errors import MissingExtraError, OptionError, UnknownNameError, WeightsFileError
from selectenv.io.weights import load_weights, save_weights
from selectenv.kernels.network.cnn import outputs
from selectenv.kernels.network.packed_images import hash_rows, pack

WORLDS = {name: MinAtarWorld(name) for name in GAMES}
SMALL = {name: MinAtarWorld(name, "minimal") for name in GAMES}


def rollout(games, steps, seed=0):
    """Play at random; return images, rewards and ends."""
    rng = np.random.default_rng(seed)
    seen = []
    for _ in range(steps):
        moves = games.step(rng.integers(games.world.n_actions, size=len(games)))
        seen.append((moves.entered.copy(), moves.reward, moves.terminated, moves.truncated, games.images.copy()))
    return [np.stack(column) for column in zip(*seen, strict=True)]


@pytest.mark.parametrize("name", GAMES)
def test_the_games_are_those_of_minatar(name):
    world = WORLDS[name]
    game = world.new_game()
    assert world.shape == tuple(game.state_shape())
    assert world.action_numbers == ALL_ACTIONS == tuple(range(game.num_actions()))
    assert SMALL[name].action_numbers == MINIMAL_ACTIONS[name] == tuple(game.minimal_action_set())
    assert (game.sticky_action_prob, world.ramping, world.horizon) == (0.1, True, None)
    settings = {"horizon": 5_000, "sticky": 0.0, "ramping": False, "actions": "minimal"}
    others = [MinAtarWorld(name, **{option: value}) for option, value in settings.items()]
    assert len({world.fingerprint, *(other.fingerprint for other in others)}) == 5
    games = Games(world, stream_keys(3, 0))
    assert games.images.dtype == np.bool_
    assert games.images.shape == (3, *world.shape)


@pytest.mark.parametrize("name", GAMES)
def test_seeding_again_plays_the_same_games_again(name):
    """MinAtar itself would not: it keeps the last action, and the state of its generator, over a reset."""
    keys = stream_keys(4, 7, "test")
    games = Games(WORLDS[name], keys)
    first = rollout(games, 60)
    games.begin(keys)
    for one, other in zip(first, rollout(games, 60), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", GAMES)
def test_a_game_does_not_know_its_neighbours(name):
    keys = stream_keys(3, 1)
    actions = np.random.default_rng(0).integers(WORLDS[name].n_actions, size=(80, 3))
    together, alone = Games(WORLDS[name], keys), [Games(WORLDS[name], keys[i : i + 1]) for i in range(3)]
    some = Games(WORLDS[name], keys)
    for row in actions:
        moves = together.step(row)
        single = [games.step(row[i : i + 1]) for i, games in enumerate(alone)]
        part = some.step(row[[2, 0]], np.array([2, 0]))  # a choice of them, in any order
        for column, ones, chosen in zip(moves, zip(*single, strict=True), part, strict=True):
            np.testing.assert_array_equal(column, np.concatenate(ones))
            np.testing.assert_array_equal(column[[2, 0]], chosen)


def test_a_reset_forgets_the_last_action():
    """With sticky actions only, every action repeats the one before: the first of an episode is always 'stay'."""
    games = Games(MinAtarWorld("Breakout", sticky=1.0, horizon=3), stream_keys(1, 0))
    paddle = games.images[0, 9, :, 0].argmax()
    games._games[0].last_action = 1  # as if left by an episode before
    games._games[0].reset()
    games.begin(stream_keys(1, 0))
    for _ in range(7):  # over the horizon, twice
        games.step(np.array([1]))
        assert games.images[0, 9, :, 0].argmax() == paddle


@pytest.mark.parametrize("name", GAMES)
def test_both_action_sets_play_the_same_game(name):
    """Action i of the small set is MinAtar's action number MINIMAL_ACTIONS[name][i], in both worlds."""
    keys = stream_keys(3, 5)
    large, small = Games(WORLDS[name], keys), Games(SMALL[name], keys)
    chosen = np.random.default_rng(0).integers(SMALL[name].n_actions, size=(60, 3))
    for row in chosen:
        for one, other in zip(large.step(np.array(MINIMAL_ACTIONS[name])[row]), small.step(row), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_horizon_truncates():
    games = Games(MinAtarWorld("Freeway", horizon=5), stream_keys(2, 0))
    stay = np.zeros(2, np.int64)
    cuts = [games.step(stay) for _ in range(10)]
    assert [moves.truncated.all() for moves in cuts] == [False] * 4 + [True] + [False] * 4 + [True]
    assert not any(moves.terminated.any() for moves in cuts)


def test_the_end_of_freeway_is_terminal():
    """Its timer of 2,500 frames is below 0 after 2,501 steps."""
    for horizon, length, terminated in ((None, 2_501, True), (2_501, 2_501, True), (2_500, 2_500, False)):
        games, over, steps = Games(MinAtarWorld("Freeway", horizon=horizon), stream_keys(1, 0)), False, 0
        while not over:
            moves = games.step(np.zeros(1, np.int64))
            over, steps = bool(moves.terminated[0] | moves.truncated[0]), steps + 1
        assert (steps, moves.terminated[0], moves.truncated[0]) == (length, terminated, not terminated)


def test_a_lost_ball_ends_an_episode_and_the_next_one_is_shown():
    games = Games(WORLDS["Breakout"], stream_keys(1, 0))
    for _ in range(200):
        moves = games.step(np.zeros(1, np.int64))
        if moves.terminated[0]:
            break
    assert moves.terminated[0]
    assert moves.entered[0, 9, :, 1].any()  # the ball is on the ground
    assert games.images[0, 3, :, 1].any()  # and back where games begin
    assert not games.images[0, 9, :, 1].any()


def test_six_divers_brought_home_leave_none():
    games = Games(WORLDS["Seaquest"], stream_keys(1, 0))
    game = games._games[0]
    game.env.sub_y, game.env.surface, game.env.diver_count, game.sticky_action_prob = 1, False, 6, 0.0
    moves = games.step(np.array([2]))  # up
    assert moves.reward[0] > 0
    assert game.env.diver_count == 0


def test_what_is_no_game():
    with pytest.raises(UnknownNameError, match="Did you mean 'Breakout'"):
        MinAtarWorld("Breakot")
    with pytest.raises(OptionError, match="sticky"):
        MinAtarWorld("Breakout", sticky=2.0)
    with pytest.raises(OptionError, match="ramping"):
        MinAtarWorld("Breakout", ramping="yes")
    with pytest.raises(UnknownNameError, match=r"unknown action set 'minimum'.*Did you mean 'minimal'"):
        MinAtarWorld("Breakout", actions="minimum")
    for horizon in (0, 2.5, "long"):
        with pytest.raises(OptionError, match="horizon"):
            MinAtarWorld("Breakout", horizon=horizon)
    with pytest.raises(OptionError, match="games"):
        stream_keys(0, 0)


def test_without_minatar_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "minatar", None)
    with pytest.raises(MissingExtraError, match=r"selectenv\[minatar\]"):
        MinAtarWorld("Breakout").new_game()

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(MissingExtraError, match=r"selectenv\[minatar\]"):
        gym.make("RewardSelection-Breakout-v0")


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "experiments.training.small_cnn", raising=False)
    with pytest.raises(MissingExtraError, match=r"selectenv\[minatar\]"):
        __import__("experiments.training.small_cnn")


@settings(max_examples=20)
@given(st.sampled_from(GAMES), st.integers(0, 1000))
def test_the_compiled_network_agrees_with_torch(name, seed):
    torch = pytest.importorskip("torch")
    from experiments.training.small_cnn import SmallCnn, as_arrays, to_tensor

    world, rng = WORLDS[name], np.random.default_rng(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = SmallCnn(world.shape[2], world.n_actions)
    images = rng.random((5, *world.shape)) < 0.2
    expert = NetworkExpert(as_arrays(network), {"actions": "all"}, world)
    with torch.inference_mode():
        expected = network(to_tensor(images)).numpy()
    np.testing.assert_allclose(outputs(expert._layers, images), expected, atol=1e-5)
    np.testing.assert_array_equal(outputs(expert._layers, images[2:3])[0], outputs(expert._layers, images)[2])


@pytest.mark.parametrize("name", GAMES)
def test_every_game_ships_an_expert_with_its_card(name):
    expert = load_expert(WORLDS[name])
    card = expert.card
    assert card["game"] == name
    assert card["episodes"] == 100
    assert card["steps_trained"] >= 1_000_000
    assert card["return"] >= {"Breakout": 10, "Freeway": 50, "Seaquest": 10, "Asterix": 15}[name]
    assert card["curve"][-1][0] == card["steps_trained"]
    assert card["command"].startswith(f"selectenv train-expert {name} ")
    images = Games(WORLDS[name], stream_keys(4, 0)).images
    assert expert.actions(images).shape == (4,)


def network_arrays(n_actions, channels=4, seed=0):
    """Random weights of an expert."""
    rng = np.random.default_rng(seed)
    shapes = {
        "0.weight": (16, channels, 3, 3),
        "0.bias": (16,),
        "3.weight": (128, 1024),
        "3.bias": (128,),
        "5.weight": (n_actions, 128),
        "5.bias": (n_actions,),
    }
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def table_arrays(n_actions, images):
    """A table that knows half of the images."""
    ids = np.unique(hash_rows(pack(images), np.uint64(0)))[::2]
    return {"ids": ids, "action": (np.arange(len(ids)) % n_actions).astype(np.uint8)}


@pytest.mark.parametrize("kind", [NetworkExpert, TableExpert])
def test_an_expert_acts_by_the_numbers_of_its_world(kind):
    """Trained with the minimal set: action i becomes MinAtar's number in a world with all actions."""
    images = np.random.default_rng(1).random((200, *WORLDS["Breakout"].shape)) < 0.2
    arrays = network_arrays(3) if kind is NetworkExpert else table_arrays(3, images)
    for card in ({}, {"actions": "minimal"}):
        large, small = (kind(arrays, card, worlds["Breakout"]) for worlds in (WORLDS, SMALL))
        np.testing.assert_array_equal(large.actions(images), np.array([0, 1, 3])[small.actions(images)])
        assert set(large.actions(images).tolist()) == {0, 1, 3}
        assert large.fingerprint == small.fingerprint


@pytest.mark.parametrize("kind", [NetworkExpert, TableExpert])
def test_actions_that_a_world_does_not_have_become_the_no_op(kind):
    images = np.random.default_rng(1).random((200, *WORLDS["Breakout"].shape)) < 0.2
    arrays, card = network_arrays(6) if kind is NetworkExpert else table_arrays(6, images), {"actions": "all"}
    chosen = kind(arrays, card, WORLDS["Breakout"]).actions(images)
    assert {0, 1, 2} < set(chosen.tolist()) <= set(ALL_ACTIONS)
    small = kind(arrays, card, SMALL["Breakout"]).actions(images)
    np.testing.assert_array_equal(small, np.array([0, 1, 0, 2, 0, 0])[chosen])
    with pytest.raises(WeightsFileError, match="action set 'some'; allowed: all, minimal"):
        kind(arrays, {"actions": "some"}, WORLDS["Breakout"])
    with pytest.raises(WeightsFileError, match=r"not the (weights|table) of an expert of Breakout"):
        kind(arrays, {"actions": "minimal"}, WORLDS["Breakout"])


def test_the_minimal_set_of_seaquest_is_all():
    NetworkExpert(network_arrays(6, 10), {"actions": "all"}, SMALL["Seaquest"])


def test_the_expert_of_breakout_earns_more_than_chance():
    from experiments.training.expert_returns import expert_returns

    world = WORLDS["Breakout"]
    assert expert_returns(world, load_expert(world, "tabular"), 20, 5).mean() > 15
    assert expert_returns(world, load_expert(world), 20, 5).mean() > 5  # chance earns 0.4


def test_a_table_answers_what_it_does_not_know_by_the_image_alone():
    world = WORLDS["Breakout"]
    table = TableExpert({"ids": np.array([1, 2], np.int64), "action": np.array([0, 1], np.uint8)}, {}, world)
    images = np.random.default_rng(0).random((50, *world.shape)) < 0.1
    first = table.actions(images)
    np.testing.assert_array_equal(first[::-1], table.actions(images[::-1].copy()))
    assert set(first.tolist()) == {0, 1, 3}


def test_expert_files_that_are_none(tmp_path):
    world = WORLDS["Breakout"]
    with pytest.raises(UnknownNameError, match=r"allowed: published, published-1, .*tabular.*\.npz"):
        load_expert(world, "publishd")
    with pytest.raises(UnknownNameError, match="unknown expert 'tabular' of Asterix"):
        load_expert(WORLDS["Asterix"], "tabular")
    with pytest.raises(WeightsFileError, match="no weights file"):
        load_expert(world, str(tmp_path / "missing.npz"))
    shipped = (FOLDER / "breakout.npz").read_bytes()
    path = tmp_path / "expert.npz"
    for damaged in (b"", b"no weights", shipped[: len(shipped) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(WeightsFileError, match=r"damaged|no weights file"):
            load_expert(world, str(path))
    np.savez(path, other=np.zeros(3))
    with pytest.raises(WeightsFileError, match="not a weights file written by selectenv"):
        load_expert(world, str(path))
    with pytest.raises(WeightsFileError, match="expert of 'Breakout', not of Asterix"):
        load_expert(WORLDS["Asterix"], str(FOLDER / "breakout.npz"))
    arrays, card = load_weights(FOLDER / "breakout.npz")
    save_weights(path, {**arrays, "5.bias": np.zeros(7, np.float32)}, card)
    with pytest.raises(WeightsFileError, match="not the weights of an expert of Breakout"):
        load_expert(world, str(path))
    save_weights(path, {**arrays, "5.bias": np.full(3, np.nan, np.float32)}, card)
    with pytest.raises(WeightsFileError, match="not finite"):
        load_expert(world, str(path))
    save_weights(path, {"ids": np.array([2, 1]), "action": np.array([0, 1], np.uint8)}, card)
    with pytest.raises(WeightsFileError, match="not the table of an expert"):
        load_expert(world, str(path))


@given(where=st.floats(0, 1), bit=st.integers(0, 7))
def test_a_damaged_expert_has_one_name(tmp_path_factory, where, bit):
    content = bytearray((FOLDER / "breakout-tabular.npz").read_bytes())
    content[min(int(where * len(content)), len(content) - 1)] ^= 1 << bit
    path = tmp_path_factory.mktemp("damage") / "expert.npz"
    path.write_bytes(content)
    with contextlib.suppress(WeightsFileError):
        load_expert(WORLDS["Breakout"], str(path))
