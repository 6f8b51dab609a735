"""The six published worlds, and custom worlds."""

import gymnasium as gym
import numpy as np
import pytest

import selectenv
from selectenv.domains import layout
from selectenv.domains import tabular as domains
from selectenv.errors import SelectEnvError, UnknownStateError, WorldError
from selectenv.evaluation import ExactReturns
from selectenv.policies import PolicyList, TablePolicy
from tests.selectenv import twins

WORLDS = {name: row.make() for name, row in selectenv.TABULAR.items()}
PUBLISHED = {  # states, actions, horizon, start states, return of the optimal policy
    "Graph": (15, 2, 8, 1, 8.0),
    "Tree": (31, 2, 5, 1, 17.685535),
    "TwoRooms": (50, 4, 20, 25, 1.0),
    "TwoRoomsTrap": (44, 4, 20, 22, 1.0),
    "FrozenLake": (11, 4, 100, 1, 0.740165),
    "CliffWalk": (37, 4, 100, 1, -13.0),
}


def exact_return(world, policy):
    return ExactReturns(world).returns(PolicyList([TablePolicy(policy)]), 1.0)[0]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_facts(name):
    world = WORLDS[name]
    states, actions, horizon, starts, best = PUBLISHED[name]
    assert (world.n_states, world.n_actions, world.horizon) == (states, actions, horizon)
    assert np.count_nonzero(world.start) == starts
    assert np.allclose(world.start[world.start > 0], 1 / starts)
    assert exact_return(world, domains.optimal_policy(world)) == pytest.approx(best, abs=1e-6)
    assert len(world.layout.positions) == states


def test_ids_are_the_worlds_own():
    assert WORLDS["FrozenLake"].ids.tolist() == [0, 1, 2, 3, 4, 6, 8, 9, 10, 13, 14]
    assert WORLDS["CliffWalk"].ids.tolist() == list(range(37))
    assert np.setdiff1d(np.arange(51), WORLDS["TwoRoomsTrap"].ids).tolist() == [13, 16, 23, 27, 34, 37, 50]


def outcome(world, state, action):
    rows = (world.ids[world.state] == state) & (world.action == action)
    following = [int(world.ids[s]) if s >= 0 else None for s in world.next_state[rows]]
    return sorted(zip(following, world.probability[rows], world.reward[rows], strict=True), key=lambda row: row[1])


def test_graph_moves():
    graph = WORLDS["Graph"]
    assert outcome(graph, 0, 0) == [(1, 1.0, 1.0)]
    assert outcome(graph, 1, 1) == [(4, 1.0, -1.0)]
    assert outcome(graph, 2, 0) == [(3, 1.0, 1.0)]
    assert outcome(graph, 13, 0) == outcome(graph, 13, 1) == [(None, 1.0, 1.0)]
    assert outcome(graph, 14, 0) == outcome(graph, 14, 1) == [(None, 1.0, -1.0)]


def test_tree_rewards_double_along_a_direction():
    tree = WORLDS["Tree"]
    (slip, p_slip, r_slip), (intended, p, r) = outcome(tree, 0, 0)
    assert (slip, intended, r_slip, r) == (2, 1, -1.0, 1.0)
    assert (p_slip, p) == (pytest.approx(0.15), 0.85)
    assert [row[2] for row in outcome(tree, 1, 0)] == [-1.0, 2.0]  # left, then left again; or a change of direction
    assert [row[2] for row in outcome(tree, 15, 0)] == [-1.0, 16.0]  # a leaf pays for the child it would enter
    assert [row[0] for row in outcome(tree, 15, 0)] == [None, None]


@pytest.mark.parametrize("depth", [1, 3, 8])
def test_tree_of_any_depth(depth):
    tree = domains.tree(depth)
    assert (tree.n_states, tree.horizon) == (2**depth - 1, depth)


def test_two_rooms_moves():
    rooms = WORLDS["TwoRooms"]
    assert outcome(rooms, 0, 0) == [(0, 1.0, 0.0)]  # up against the wall
    assert outcome(rooms, 24, 3) == [(25, 1.0, 0.0)]  # through the door
    assert outcome(rooms, 25, 0) == [(25, 1.0, 0.0)]
    assert outcome(rooms, 49, 3) == [(None, 1.0, 1.0)]
    assert outcome(WORLDS["TwoRoomsTrap"], 12, 3) == [(None, 1.0, -100.0)]


def test_cliff_walk_is_gymnasiums():
    cliff = WORLDS["CliffWalk"]
    assert outcome(cliff, 36, 1) == [(36, 1.0, -100.0)]
    assert outcome(cliff, 35, 2) == [(None, 1.0, -1.0)]


@pytest.mark.parametrize("name", PUBLISHED)
def test_experts(name):
    """Value iteration's expert earns the best return; hand-made ones are the default where they were published."""
    world = WORLDS[name]
    hand_made = world.published_expert is not None
    assert hand_made == (name in ("FrozenLake", "CliffWalk"))
    if not hand_made:
        assert np.array_equal(domains.expert_actions(world), domains.expert_actions(world, "optimal"))


def test_frozen_lake_mixtures_earn_what_was_published():
    lake = WORLDS["FrozenLake"]
    for expert, earns, noise in (("published", 0.025, 0.0005), ("optimal", 0.069, 0.0025)):
        policy = domains.mixture_policy(domains.expert_actions(lake, expert), 0.5, "all")
        assert exact_return(lake, policy) == pytest.approx(earns, abs=noise)


def test_cliff_walk_expert():
    cliff = WORLDS["CliffWalk"]
    table = dict(zip(cliff.ids.tolist(), cliff.published_expert, strict=True))
    up, right, down = 0, 1, 2
    assert np.flatnonzero(table[36]).tolist() == [up]
    assert np.flatnonzero(table[5]).tolist() == [right, down]
    assert np.flatnonzero(table[30]).tolist() == [right]
    assert np.flatnonzero(table[11]).tolist() == np.flatnonzero(table[35]).tolist() == [down]


def test_mixtures():
    expert = np.array([[True, False, False], [True, True, True]])
    np.testing.assert_allclose(domains.mixture_policy(expert, 0.7, "all")[0], [0.8, 0.1, 0.1])
    np.testing.assert_allclose(domains.mixture_policy(expert, 0.7, "non-expert"), [[0.7, 0.15, 0.15], [1 / 3] * 3])


@pytest.mark.parametrize("options", [{"map_name": "8x8"}, {"desc": ["SFF", "FHG"]}, {"is_slippery": False}])
def test_other_lakes(options):
    lake = domains.frozen_lake(**options)
    assert lake.published_expert is None
    assert 0 < exact_return(lake, domains.optimal_policy(lake)) <= 1


@pytest.mark.parametrize("options", [{"map_name": "9x9"}, {"desc": ["SFF", "FG"]}])
def test_maps_that_gymnasium_refuses(options):
    with pytest.raises(WorldError, match="FrozenLake"):
        domains.frozen_lake(**options)


def test_a_toy_text_environment_becomes_a_world():
    world = domains.from_toy_text(gym.make("Taxi-v4" if "Taxi-v4" in gym.registry else "Taxi-v3"))
    assert world.n_states == 400  # 500 ids less those that end or cannot be reached
    assert world.n_actions == 6
    assert world.horizon == 200


def test_an_environment_without_a_table_is_refused():
    for env in (gym.make("CartPole-v1"), "FrozenLake", None):
        with pytest.raises(WorldError, match="toy-text table"):
            domains.from_toy_text(env)


GOOD = {
    "state": [0, 0, 1],
    "action": [0, 0, 0],
    "probability": [0.5, 0.5, 1.0],
    "next_state": [0, 1, 9],
    "reward": [0.0, 1.0, 2.0],
    "terminated": [False, False, True],
    "start": [1.0, 0.0],
    "horizon": 5,
}


def test_own_world():
    world = selectenv.from_outcomes("own", **GOOD)
    p, r, _ = twins.dense_world(world)
    np.testing.assert_allclose(r, [[0.5], [2.0]])
    np.testing.assert_allclose(p[:, 0], [[0.5, 0.5], [0, 0]])


@pytest.mark.parametrize("beyond", [-9, 10**11])
def test_what_lies_beyond_an_end_is_ignored(beyond):
    assert selectenv.from_outcomes("own", **GOOD | {"next_state": [0, 1, beyond]}).n_states == 2


def test_a_long_corridor_and_a_deep_tree():
    n = 20_000
    cells = np.arange(n)
    world = selectenv.from_outcomes(
        "corridor",
        state=cells,
        action=cells * 0,
        probability=np.ones(n),
        next_state=cells + 1,
        reward=cells * 0.0,
        terminated=cells == n - 1,
        start=cells == 0,
    )
    assert (world.n_states, world.horizon) == (n, n)
    assert domains.tree(14).n_states == 2**14 - 1


def test_no_map_by_chance():
    with pytest.raises(WorldError, match="at random"):
        domains.frozen_lake(map_name=None)


def test_unreachable_states_are_left_out():
    world = selectenv.from_outcomes(
        "own",
        **GOOD
        | {
            "state": [0, 0, 1, 7],
            "action": [0] * 4,
            "probability": [0.5, 0.5, 1, 1],
            "next_state": [0, 1, 0, 0],
            "reward": [0.0] * 4,
            "terminated": [False, False, True, False],
        },
    )
    assert world.ids.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probability": [1.5, -0.5, 1.0]}, "probabilities must be 0 or more"),
        ({"probability": [0.5, 0.4, 1.0]}, "state 0, action 0 sum to 0.9"),
        ({"probability": [0.5, np.nan, 1.0]}, "probabilities must be"),
        ({"reward": [0.0, np.inf, 0.0]}, "rewards numbers from"),
        ({"start": [0.0, 0.0]}, "start distribution must have a positive entry"),
        ({"start": []}, "start distribution"),
        ({"start": [0.5, 0.0]}, "start distribution sums to 0.5"),
        ({"start": [0.0, 0.0, 1.0]}, "starts in state 2, which has no actions"),
        ({"terminated": [False, False, False]}, "enters state 9"),
        ({"state": [0.5, 0.0, 1.0]}, "must be integers"),
        ({"state": [0, 0]}, "same length"),
        ({"n_actions": 2}, "sum to 0, not 1"),
        ({"action": [0, 0, -1]}, "actions must lie"),
        ({"horizon": 0}, "horizon must be a whole number"),
        ({"horizon": None}, "has cycles: it needs a horizon"),
        ({"layout": layout.square_layout(3)}, "layout places 3 states"),
        ({"expert": {0: [0]}}, "no action at state 1"),
        ({"expert": {0: [], 1: [0]}}, "actions at state 0 must be a non-empty list"),
        ({"expert": {0: [-1], 1: [0]}}, "actions at state 0"),
        ({"expert": {0: [7], 1: [0]}}, "actions at state 0"),
        ({"expert": {0: 0, 1: [0]}}, "actions at state 0"),
        ({"horizon": "a"}, "horizon must be"),
        ({"horizon": float("inf")}, "horizon must be"),
        ({"n_actions": "a"}, "n_actions must be"),
        ({"terminated": ["a", "b", "c"]}, "terminated must be true or false"),
    ],
)
def test_worlds_that_make_no_sense(change, message):
    with pytest.raises(WorldError, match=message):
        selectenv.from_outcomes("own", **GOOD | change)


def test_an_expert_of_unknown_states():
    with pytest.raises(UnknownStateError, match="state 5"):
        selectenv.from_outcomes("own", **GOOD, expert={0: [0], 1: [0], 5: [0]})


@pytest.mark.parametrize("depth", [0, 17, 2.5, "five", True])
def test_tree_depths_out_of_range(depth):
    with pytest.raises(WorldError, match="depth"):
        domains.tree(depth)


def test_all_errors_have_one_root():
    assert issubclass(WorldError, SelectEnvError)
