"""Problems on which selectors are trained: random worlds, and lakes, corridors, cliffs and layers of many sizes.

None has the shape of a published world. The data contain expert actions with any share from 0 to 1; some experts of
slippery grids act as if the ground were not slippery.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from selectenv.checks import check_int
from selectenv.datasets import collect, dataset_spec
from selectenv.domains.layout import GRID_ARROWS, Layout, square_layout
from selectenv.domains.tabular.mixture import expert_actions
from selectenv.domains.tabular.random_worlds import is_published, random_world
from selectenv.domains.tabular.world import TabularWorld, from_outcomes
from selectenv.errors import OptionError, WorldError
from selectenv.evaluation import Evaluator, ExactReturns
from selectenv.learners import make_learner
from selectenv.options import MIXTURES
from selectenv.problem import SelectionProblem
from selectenv.typing import BoolArray, FloatArray, IntArray

SIZES = (1_000, 50_000)
"""Minimum and maximum number of transitions of a dataset."""
EXTREME = 0.1
"""Probability of data without any expert action, and of data of the expert alone."""
CARELESS = 0.5
"""Probability that the expert of a slippery grid acts as if the ground were not slippery."""
WORTHWHILE = 1e-3
"""Minimum gain of labelling everything over labelling nothing, as a share of the range of returns of the world."""
TRIES = 100
SMALLEST, MEDIUM, LARGEST = 8, 64, 200
"""Numbers of states of random worlds: most have at most a medium number."""
KINDS = {"random": 0.48, "large": 0.02, "lake": 0.17, "corridor": 0.1, "cliff": 0.11, "entries": 0.12}
"""Kind of world -> probability."""
SIDEWAYS = np.array([[2, 3], [2, 3], [0, 1], [0, 1]])
"""The two actions at right angles to up, down, left and right."""


@dataclass(frozen=True)
class TrainingProblems:
    """Draws problems in which labels matter; the same generator state gives the same problem."""

    learner: str = "uds"
    largest: int = LARGEST
    """Maximum number of states of a world."""

    def __post_init__(self) -> None:
        """Reject sizes that no world has."""
        check_int("largest", self.largest, SMALLEST, LARGEST)

    def __call__(self, rng: np.random.Generator) -> SelectionProblem:
        """Return a problem drawn with ``rng``.

        Raises:
            OptionError: labels do not matter in any of the worlds drawn.
        """
        for _ in range(TRIES):
            world = draw_world(rng, self.largest)
            problem = self._problem(world, rng)
            nothing, everything = (
                problem.score(mask) for mask in (np.zeros(world.n_states, bool), problem.dataset.labelable)
            )
            if everything - nothing > WORTHWHILE * (world.best_return() - world.worst_return()):
                return problem.with_calls()
        raise OptionError(f"labels do not matter in any of {TRIES} random worlds")

    def _problem(self, world: TabularWorld, rng: np.random.Generator) -> SelectionProblem:
        extreme = rng.random()
        share = 0.0 if extreme < EXTREME else 1.0 if extreme > 1 - EXTREME else float(rng.uniform())
        spec = dataset_spec(
            world,
            expert_share=share,
            mixture=str(rng.choice(MIXTURES)),
            expert="optimal" if world.published_expert is None else "published",
            size=int(np.exp(rng.uniform(*np.log(SIZES)))),
            seed=int(rng.integers(2**63)),
        )
        data = collect(world, spec)
        evaluator = Evaluator(ExactReturns(world))
        states = int(data.labelable.sum())
        return SelectionProblem(data, make_learner(self.learner), evaluator, world.layout, budget_states=states)


def draw_world(rng: np.random.Generator, largest: int = LARGEST) -> TabularWorld:
    """Draw a world of a random kind, of 8 to ``largest`` states.

    Raises:
        WorldError: no such world was found.
    """
    drawn = {"lake": _lake, "corridor": _corridor, "cliff": _cliff, "entries": _entries}
    for _ in range(TRIES):
        kind = str(rng.choice(list(KINDS), p=list(KINDS.values())))
        if kind == "large" and largest > MEDIUM:
            return random_world(rng, None, MEDIUM, largest)
        if kind not in drawn:
            return random_world(rng, None, SMALLEST, min(MEDIUM, largest))
        world = drawn[kind](rng)
        if SMALLEST <= world.n_states <= largest and not is_published(world):
            return world
    raise WorldError(f"no world of {SMALLEST} to {largest} states was found in {TRIES} tries")


def _lake(rng: np.random.Generator) -> TabularWorld:
    """Draw slippery ice with holes, a start and a far goal."""
    rows, columns = (int(n) for n in np.exp(rng.uniform(np.log(3), np.log(13), 2)))
    kinds = np.where(rng.random((rows, columns)) < rng.uniform(0.05, 0.3), "trap", "")
    start, goal = _far_apart(rng, rows, columns)
    kinds[start], kinds[goal] = "", "goal"
    pays = {"": 0.0, "goal": float(rng.choice([1, 10])), "trap": -float(rng.choice([0, 0, 0, 1]))}
    slip = float(rng.choice([0.0, 0.2, 2 / 3, 2 / 3]))
    return _grid("lake", rng, kinds, pays, slip, [start], int(rng.integers(50, 151)))


def _corridor(rng: np.random.Generator) -> TabularWorld:
    """Draw a long and narrow grid with a goal near one end, sometimes with walls and doors."""
    rows, columns = int(rng.integers(1, 5)), int(rng.integers(8, 41))
    kinds = np.full((rows, columns), "", dtype="<U5")
    for column in rng.choice(columns, int(rng.integers(0, 1 + columns // 6)), replace=False):
        door = int(rng.integers(rows))
        kinds[:, column] = np.where(np.arange(rows) == door, "", "wall")
    traps = rng.random((rows, columns)) < rng.choice([0.0, 0.0, 0.1])
    kinds[traps & (kinds == "")] = "trap"
    goal = int(rng.integers(rows)), columns - 1 - int(rng.integers(0, 3))
    kinds[goal] = "goal"
    free = [(int(r), int(c)) for r, c in np.argwhere(kinds == "") if c < columns // 2]
    starts = free if rng.random() < 0.5 else free[:1]
    step = -float(rng.choice([0, 0, 0.1, 1]))
    pays = {"": step, "goal": float(rng.choice([1, 10])), "trap": -float(rng.choice([0, 1, 10, 100]))}
    return _grid(
        "corridor", rng, kinds, pays, float(rng.choice([0.0, 0.0, 0.2])), starts, int(rng.integers(1, 4)) * columns
    )


def _cliff(rng: np.random.Generator) -> TabularWorld:
    """Draw a grid in which every step costs something and bands of cliff lead back to the start."""
    rows, columns = int(rng.integers(2, 7)), int(rng.integers(4, 17))
    kinds = np.full((rows, columns), "", dtype="<U5")
    start, goal = _far_apart(rng, rows, columns)
    for _ in range(int(rng.integers(1, 3))):
        row, left = int(rng.integers(rows)), int(rng.integers(columns))
        kinds[row, left : left + int(rng.integers(1, columns))] = "cliff"
    kinds[start], kinds[goal] = "", "goal"
    step = -float(rng.choice([0.1, 1, 1]))
    pays = {"": step, "goal": step + float(rng.choice([0, 0, 1, 10])), "cliff": -float(rng.choice([10, 100]))}
    return _grid("cliff", rng, kinds, pays, float(rng.choice([0.0, 0.0, 0.1])), [start], int(rng.integers(30, 151)))


def _far_apart(rng: np.random.Generator, rows: int, columns: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Draw two cells, the farthest apart of several pairs."""
    pairs = rng.integers([rows, columns, rows, columns], size=(4, 4))
    pairs = np.concatenate([pairs, [[0, 0, rows - 1, columns - 1]]])
    distance = np.abs(pairs[:, :2] - pairs[:, 2:]).sum(axis=1)
    one = pairs[distance.argmax() if rng.random() < 0.7 or distance[0] == 0 else 0].tolist()
    return (one[0], one[1]), (one[2], one[3])


def _grid(
    name: str,
    rng: np.random.Generator,
    kinds: NDArray[np.str_],
    pays: dict[str, float],
    slip: float,
    starts: list[tuple[int, int]],
    horizon: int,
) -> TabularWorld:
    """Build a grid: goals and traps terminate, a cliff leads to the start, walls are not entered."""
    cells = np.argwhere(kinds != "wall")[:, ::-1]
    number = {(int(x), int(y)): i for i, (x, y) in enumerate(cells)}
    kind = np.array([kinds[y, x] for x, y in cells])
    arrows = GRID_ARROWS["up-down-left-right"]
    moved = np.array(
        [[number.get((x + dx, y + dy), i) for dx, dy in arrows] for i, (x, y) in enumerate(cells.tolist())]
    )
    home = np.array([number[x, y] for y, x in starts if (x, y) in number], np.int64)
    home = home[kind[home] == ""] if len(home) else home
    start = np.zeros(len(cells))
    start[home if len(home) else np.flatnonzero(kind == "")[:1]] = 1
    start /= start.sum()
    layout = Layout(cells.astype(float), "grid", arrows)
    world = _grid_world(name, kind, moved, pays, slip, start, horizon, layout)
    if slip == 0.0 or rng.random() > CARELESS:
        return world
    sure = _grid_world(name, kind, moved, pays, 0.0, start, horizon, layout)
    return replace(world, published_expert=_careless(world, sure))


def _careless(world: TabularWorld, sure: TabularWorld) -> BoolArray:
    """Return the actions [n, actions] that are best where nothing slips; all of them in states not reached then."""
    expert = np.ones((world.n_states, world.n_actions), bool)
    known = np.isin(world.ids, sure.ids)
    expert[known] = expert_actions(sure, "optimal")[np.searchsorted(sure.ids, world.ids[known])]
    return expert


def _grid_world(
    name: str,
    kind: NDArray[np.str_],
    moved: IntArray,
    pays: dict[str, float],
    slip: float,
    start: FloatArray,
    horizon: int,
    layout: Layout,
) -> TabularWorld:
    targets = np.stack([moved, moved[:, SIDEWAYS[:, 0]], moved[:, SIDEWAYS[:, 1]]], axis=2)
    chances = np.broadcast_to([1 - slip, slip / 2, slip / 2], targets.shape)
    n, n_actions, ways = targets.shape
    state, action, _ = (
        x.ravel() for x in np.meshgrid(np.arange(n), np.arange(n_actions), np.arange(ways), indexing="ij")
    )
    entered = targets.ravel()
    used = (kind[state] == "") & (chances.ravel() > 0)
    state, action, entered = state[used], action[used], entered[used]
    world = from_outcomes(
        name,
        state=state,
        action=action,
        probability=chances.ravel()[used],
        next_state=np.where(kind[entered] == "cliff", int(start.argmax()), entered),
        reward=np.array([pays[one] for one in kind[entered]]),
        terminated=np.isin(kind[entered], ("goal", "trap")),
        start=start,
        horizon=horizon,
        n_actions=n_actions,
    )
    return replace(world, layout=replace(layout, positions=layout.positions[world.ids]))


def _entries(rng: np.random.Generator) -> TabularWorld:
    """Draw layers or a tree in which rewards are earned by entering nodes, most of them with some reward."""
    n_actions = int(rng.integers(2, 4))
    if rng.random() < 0.5:
        width, depth = int(rng.integers(2, 5)), int(rng.integers(4, 15))
        layer = np.arange(width * depth) // width
        children = (layer[:, None] + 1) * width + rng.integers(width, size=(len(layer), n_actions))
        children[layer == depth - 1] = -1
    else:
        size = int(rng.integers(10, 70))
        children = np.arange(size)[:, None] * n_actions + 1 + np.arange(n_actions)
        children[children >= size] = -1
    n = len(children)
    slip = float(rng.choice([0.0, 0.0, rng.uniform(0, 0.3)]))
    other = (np.arange(n_actions) + int(rng.integers(1, n_actions))) % n_actions
    targets = np.stack([children, children[:, other]], axis=2)
    amounts = rng.choice([1.0, 1.0, 2.0, 4.0], n) if rng.random() < 0.5 else np.abs(rng.normal(size=n))
    amounts = amounts * rng.choice([-1, 1], n) * (rng.random(n) < rng.choice([0.3, 1.0, 1.0])) * rng.choice([1.0, 10.0])
    last = rng.choice([-1.0, 0.0, 1.0], (n, n_actions)) * np.abs(amounts).max()
    state, action, _ = (x.ravel() for x in np.meshgrid(np.arange(n), np.arange(n_actions), [0, 1], indexing="ij"))
    entered, ends = targets.ravel(), targets.ravel() < 0
    chances = np.broadcast_to([1 - slip, slip], targets.shape).ravel()
    world = from_outcomes(
        "entries",
        state=state,
        action=action,
        probability=chances,
        next_state=np.where(ends, 0, entered),
        reward=np.where(ends, last[state, action], amounts[np.maximum(entered, 0)]),
        terminated=ends,
        start=(np.arange(n) == 0).astype(float),
        horizon=None,
        n_actions=n_actions,
    )
    return replace(world, layout=square_layout(world.n_states))
