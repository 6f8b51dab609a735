"""Randomly generated worlds: trees, layered graphs, grids with rooms and hazards, and sparse decision processes.

They serve to train strategies that generalise across worlds, so they vary in size, shape, stochasticity, start and
termination, and in the number and sign of rewards. The published worlds, and worlds of the same shape, are excluded.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from selectenv.checks import check_int, check_name
from selectenv.domains.layout import GRID_ARROWS, Layout, square_layout
from selectenv.domains.tabular.cliff_walk import cliff_walk
from selectenv.domains.tabular.frozen_lake import frozen_lake
from selectenv.domains.tabular.graph import graph
from selectenv.domains.tabular.tree import tree
from selectenv.domains.tabular.two_rooms import two_rooms, two_rooms_trap
from selectenv.domains.tabular.world import TabularWorld, from_outcomes
from selectenv.errors import WorldError
from selectenv.typing import FloatArray, IntArray

SMALLEST, LARGEST = 8, 100
"""Smallest and largest number of states of a random world."""
TRIES = 1000
ROUNDS = 12
"""Rounds of colour refinement in `shape_of`."""
TERMINAL = -1


def random_world(
    rng: np.random.Generator, kind: str | None = None, smallest: int = SMALLEST, largest: int = LARGEST
) -> TabularWorld:
    """Draw a random world.

    Args:
        rng: source of randomness.
        kind: "tree", "layers", "grid" or "sparse"; defaults to a random one of them.
        smallest: minimum number of states.
        largest: maximum number of states.

    Raises:
        WorldError: no world of this size was found.
    """
    check_int("the largest number of states", largest, SMALLEST, 10_000, WorldError)
    check_int("the smallest number of states", smallest, SMALLEST, largest, WorldError)
    draw = KINDS[check_name("kind of world", kind, KINDS) if kind else str(rng.choice(list(KINDS)))]
    for _ in range(TRIES):
        world = draw(rng, int(np.exp(rng.uniform(np.log(smallest), np.log(largest + 1)))))
        if smallest <= world.n_states <= largest and not is_published(world):
            return world
    raise WorldError(f"no world of {smallest} to {largest} states was found in {TRIES} tries")


def pad(world: TabularWorld, n_states: int) -> TabularWorld:
    """Return the world padded with unreachable states, so that worlds of different sizes fit one environment.

    Raises:
        WorldError: the world has more than ``n_states`` states.
    """
    more = n_states - world.n_states
    if more < 0:
        raise WorldError(f"the world {world.name!r} has {world.n_states} states and cannot be padded to {n_states}")
    added = np.repeat(np.arange(world.n_states, n_states), world.n_actions)
    actions = np.tile(np.arange(world.n_actions), more)
    block = square_layout(max(more, 1)).positions[:more] + (world.layout.positions.max(axis=0) * [0, 1] + [0, 2])
    expert = world.published_expert
    return replace(
        world,
        ids=np.concatenate([world.ids, world.ids.max() + 1 + np.arange(more)]),
        state=np.concatenate([world.state, added]),
        action=np.concatenate([world.action, actions]),
        probability=np.concatenate([world.probability, np.ones(len(added))]),
        next_state=np.concatenate([world.next_state, np.full(len(added), TERMINAL)]),
        reward=np.concatenate([world.reward, np.zeros(len(added))]),
        start=np.concatenate([world.start, np.zeros(more)]),
        layout=replace(world.layout, positions=np.concatenate([world.layout.positions, block])),
        published_expert=None if expert is None else np.pad(expert, ((0, more), (0, 0)), constant_values=True),
    )


def _tree(rng: np.random.Generator, n: int) -> TabularWorld:
    """Draw a tree of random shape; a branch without a child terminates the episode."""
    n_actions = int(rng.integers(2, 4))
    children = np.full((n, n_actions), TERMINAL)
    depth = np.zeros(n, np.int64)
    open_places = [(0, a) for a in range(n_actions)]
    deep = rng.random() < 0.5
    for node in range(1, n):
        at = int(rng.integers(max(0, len(open_places) - n_actions * 2), len(open_places)) if deep else 0)
        parent, a = open_places.pop(at)
        children[parent, a] = node
        depth[node] = depth[parent] + 1
        open_places += [(node, other) for other in range(n_actions)]
    targets, chances = _slip(children, _sometimes(rng, 0.3), rng)
    order = np.argsort(depth, kind="stable")
    column = np.empty(n)
    for level in range(depth.max() + 1):
        mine = order[depth[order] == level]
        column[mine] = (np.arange(len(mine)) + 0.5) / len(mine) * np.sqrt(n) * 2
    positions = np.stack([column, depth * 1.4], axis=1)
    start = np.arange(n) == 0
    return _finish("tree", rng, targets, chances, start, None, Layout(positions, "nodes", edges=_edges(children)))


def _layers(rng: np.random.Generator, n: int) -> TabularWorld:
    """Draw layers of nodes; every action leads to a node of the next layer, and the last layer is terminal."""
    width = int(rng.integers(2, max(3, int(np.sqrt(n)) + 1)))
    depth = max(2, n // width)
    n_actions = int(rng.integers(2, 5))
    number = np.arange(width * depth)
    layer = number // width
    children = (layer[:, None] + 1) * width + rng.integers(width, size=(len(number), n_actions))
    children[layer == depth - 1] = TERMINAL
    targets, chances = _slip(children, _sometimes(rng, 0.3), rng)
    start = layer == 0 if rng.random() < 0.5 else number == 0
    positions = np.stack([layer * 1.5, number % width], axis=1).astype(float)
    return _finish("layers", rng, targets, chances, start, None, Layout(positions, "nodes", edges=_edges(children)))


def _grid(rng: np.random.Generator, n: int) -> TabularWorld:
    """Draw a grid with rooms, walls, goals, traps and cliffs; actions may slip sideways."""
    columns = int(rng.integers(3, max(4, n // 3 + 1)))
    rows = max(2, round(n / columns))
    wall = rng.random((rows, columns)) < _sometimes(rng, 0.25)
    if columns > 5 and rng.random() < 0.5:  # a wall with a door
        at = int(rng.integers(2, columns - 2))
        wall[:, at] = True
        wall[int(rng.integers(rows)), at] = False
    if (~wall).sum() < SMALLEST:
        wall[:] = False
    cells = np.argwhere(~wall)[:, ::-1]  # x, y
    number = {(int(x), int(y)): i for i, (x, y) in enumerate(cells)}
    kinds = np.full(len(cells), "", dtype="<U5")
    kinds[rng.choice(len(cells), min(int(rng.integers(1, 3)), len(cells) - 1), replace=False)] = "goal"
    danger = str(rng.choice(["", "trap", "cliff"]))
    if danger:
        free = np.flatnonzero(kinds == "")
        kinds[rng.choice(free, max(1, int(rng.uniform(0.05, 0.2) * len(free))), replace=False)] = danger
    arrows = GRID_ARROWS["up-down-left-right"]
    moved = np.array(
        [[number.get((x + dx, y + dy), i) for dx, dy in arrows] for i, (x, y) in enumerate(cells.tolist())]
    )
    slip = _sometimes(rng, 0.7)
    sideways = np.array([[2, 3], [2, 3], [0, 1], [0, 1]])
    targets = np.stack([moved, moved[:, sideways[:, 0]], moved[:, sideways[:, 1]]], axis=2)
    chances = np.broadcast_to([1 - slip, slip / 2, slip / 2], targets.shape).copy()
    free = np.flatnonzero(kinds == "")
    start = np.zeros(len(cells))
    start[rng.choice(free, 1 if rng.random() < 0.5 else len(free) // 2 + 1, replace=False)] = 1
    horizon = int((rows + columns) * rng.uniform(2, 5))
    return _finish_grid(rng, cells, kinds, targets, chances, start, horizon)


def _finish_grid(
    rng: np.random.Generator,
    cells: IntArray,
    kinds: NDArray[np.str_],
    targets: IntArray,
    chances: FloatArray,
    start: FloatArray,
    horizon: int,
) -> TabularWorld:
    """Assign rewards to cells and build the world: goals and traps are terminal, a cliff leads to the start."""
    pays = {"": -float(rng.integers(0, 2)) * rng.choice([0.01, 0.1, 1.0]), "goal": float(rng.choice([1, 1, 10]))}
    pays["trap"] = pays["cliff"] = -float(rng.choice([0, 1, 10, 100]))
    reward = np.vectorize(pays.__getitem__, otypes=[float])(kinds)[targets]
    terminal = np.isin(kinds, ("goal", "trap"))[targets]
    home = int(np.flatnonzero(start)[0])
    entered = np.where((kinds == "cliff")[targets], home, targets)
    n, n_actions, ways = targets.shape
    acting = kinds == ""
    state, action, _ = (
        x.ravel() for x in np.meshgrid(np.arange(n), np.arange(n_actions), np.arange(ways), indexing="ij")
    )
    used = acting[state]
    world = from_outcomes(
        "grid",
        state=state[used],
        action=action[used],
        probability=chances.ravel()[used],
        next_state=entered.ravel()[used],
        reward=reward.ravel()[used],
        terminated=terminal.ravel()[used],
        start=start / start.sum(),
        horizon=horizon,
        n_actions=n_actions,
    )
    shown = np.where(kinds == "cliff", "trap", kinds)
    marks = tuple((float(x), float(y), str(k)) for (x, y), k in zip(cells, shown, strict=True) if k)
    return _drawn(world, Layout(cells.astype(float), "grid", GRID_ARROWS["up-down-left-right"], marks))


def _sparse(rng: np.random.Generator, n: int) -> TabularWorld:
    """Draw a process in which every action leads to one of a few states, often nearby; some states may terminate."""
    n_actions, ways = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    near = rng.random() < 0.5
    reach = max(3, n // 5) if near else n
    targets = (np.arange(n)[:, None, None] + rng.integers(-reach, reach + 1, (n, n_actions, ways))) % n
    chances = rng.dirichlet(np.ones(ways), (n, n_actions))
    terminal = rng.choice(n, max(1, int(n * rng.uniform(0.02, 0.15))), replace=False)
    targets[terminal] = np.where(rng.random((len(terminal), n_actions, 1)) < 0.7, TERMINAL, targets[terminal])
    start = np.arange(n) == 0 if rng.random() < 0.5 else np.arange(n) < max(1, n // 4)
    return _finish("sparse", rng, targets, chances, start, int(rng.integers(10, 60)), square_layout(n))


def _finish(
    kind: str,
    rng: np.random.Generator,
    targets: IntArray,
    chances: FloatArray,
    start: NDArray[np.bool_],
    horizon: int | None,
    layout: Layout,
) -> TabularWorld:
    """Assign rewards to state-action pairs and build the world."""
    n, n_actions, ways = targets.shape
    state, action, _ = (
        x.ravel() for x in np.meshgrid(np.arange(n), np.arange(n_actions), np.arange(ways), indexing="ij")
    )
    following = targets.ravel()
    terminal = following == TERMINAL
    size = rng.choice([1.0, 10.0])
    signs = rng.choice(3)  # gains, losses, or both
    amounts = (
        np.abs(rng.normal(size=(n + 1, n_actions))) if rng.random() < 0.5 else rng.integers(1, 5, (n + 1, n_actions))
    )
    amounts = amounts * (1 if signs == 0 else -1 if signs == 1 else rng.choice([-1, 1], amounts.shape)) * size
    if rng.random() < 0.5:  # few rewards: at termination, or anywhere
        few = np.zeros((n + 1, n_actions), bool)
        if rng.random() < 0.5 and terminal.any():
            few[state[terminal], action[terminal]] = True
        else:
            few[rng.choice(n, max(1, n // 10), replace=False)] = True
        amounts = np.where(few, np.where(rng.random(amounts.shape) < 0.3, -1, 1) * np.abs(amounts), 0.0)
    world = from_outcomes(
        kind,
        state=state,
        action=action,
        probability=chances.ravel(),
        next_state=np.where(terminal, 0, following),
        reward=amounts[state, action],
        terminated=terminal,
        start=start / start.sum(),
        horizon=horizon,
        n_actions=n_actions,
    )
    return _drawn(world, layout)


def _drawn(world: TabularWorld, layout: Layout) -> TabularWorld:
    """Return the world with its reachable states placed as in ``layout``."""
    positions, edges = layout.positions, layout.edges
    if edges is not None:
        number = np.full(len(positions), -1)
        number[world.ids] = np.arange(world.n_states)
        edges = edges[np.isin(edges[:, 0], world.ids) & np.isin(edges[:, 2], world.ids)]
        edges = np.stack([number[edges[:, 0]], edges[:, 1], number[edges[:, 2]]], axis=1)
    return replace(world, layout=replace(layout, positions=positions[world.ids], edges=edges))


def _slip(children: IntArray, chance: float, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Return targets and probabilities [n, actions, 2]: with probability ``chance`` another action is executed."""
    n_actions = children.shape[1]
    other = (np.arange(n_actions) + rng.integers(1, n_actions)) % n_actions
    targets = np.stack([children, children[:, other]], axis=2)
    return targets, np.broadcast_to([1 - chance, chance], targets.shape).copy()


def _sometimes(rng: np.random.Generator, most: float) -> float:
    """Return 0 with probability 1/2, otherwise a uniform number up to ``most``."""
    return float(rng.uniform(0, most)) if rng.random() < 0.5 else 0.0


def _edges(children: IntArray) -> IntArray:
    state, action = np.nonzero(children != TERMINAL)
    return np.stack([state, action, children[state, action]], axis=1)


KINDS: dict[str, Callable[[np.random.Generator, int], TabularWorld]] = {
    "tree": _tree,
    "layers": _layers,
    "grid": _grid,
    "sparse": _sparse,
}


Shape = tuple[int, ...]


def is_published(world: TabularWorld) -> bool:
    """Return whether the world has the shape of a published one, regardless of rewards, probabilities and numbering."""
    known = _published()
    return any(shape[0] == world.n_states for shape in known) and shape_of(world) in known


@cache
def _published() -> frozenset[Shape]:
    """Return the shapes of the published worlds."""
    made = (graph(), tree(), two_rooms(), two_rooms_trap(), frozen_lake(), cliff_walk())
    return frozenset(map(shape_of, made))


def shape_of(world: TabularWorld) -> Shape:
    """Return an invariant of the graph of states (colour refinement): isomorphic worlds have the same shape."""
    following: list[set[int]] = [set() for _ in range(world.n_states)]
    possible = world.probability > 0
    for state, after in zip(world.state[possible].tolist(), world.next_state[possible].tolist(), strict=True):
        following[state].add(after)
    colours = [int(chance > 0) for chance in world.start]
    for _ in range(ROUNDS):
        colours = [
            hash((mine, *sorted(colours[after] if after != TERMINAL else TERMINAL for after in later)))
            for mine, later in zip(colours, following, strict=True)
        ]
    return world.n_states, world.n_actions, *sorted(colours)
