"""TwoRooms: from anywhere in the left room through one door to the far corner of the right room.

Two rooms of 5 x 5 cells stand side by side; a single door cell joins their middle rows, 51 free cells in all, numbered
row by row. Actions up, down, left, right move for certain; bumping into a wall stays. Entering the last cell (50,
bottom right) pays 1 and ends the episode; everything else pays 0. Episodes start anywhere in the left room and are cut
after 20 steps. In TwoRoomsTrap entering one of six trap cells pays -100 and ends the episode.
"""

from collections.abc import Collection

import numpy as np

from selectenv.domains.layout import GRID_ARROWS, Layout
from selectenv.domains.tabular.world import TabularWorld, from_outcomes

SIDE = 5
TRAPS = (13, 16, 23, 27, 34, 37)
TRAP_REWARD = -100.0
HORIZON = 20


def two_rooms() -> TabularWorld:
    """Return TwoRooms."""
    return _rooms("TwoRooms", ())


def two_rooms_trap() -> TabularWorld:
    """Return TwoRooms with traps."""
    return _rooms("TwoRoomsTrap", TRAPS)


def _rooms(name: str, traps: Collection[int]) -> TabularWorld:
    """Number the free cells, move, and let goal and traps end episodes."""
    door = (SIDE, SIDE // 2)
    cells = [(x, y) for y in range(SIDE) for x in range(2 * SIDE + 1) if x != SIDE or (x, y) == door]
    number = {cell: i for i, cell in enumerate(cells)}
    goal = len(cells) - 1
    ends = {goal: 1.0} | dict.fromkeys(traps, TRAP_REWARD)
    arrows = GRID_ARROWS["up-down-left-right"]
    rows = [
        (i, a, number.get((x + dx, y + dy), i))
        for i, (x, y) in enumerate(cells)
        if i not in ends
        for a, (dx, dy) in enumerate(arrows)
    ]
    state, action, next_state = (np.array(column) for column in zip(*rows, strict=True))
    start = np.array([x < SIDE and i not in ends for i, (x, y) in enumerate(cells)], float)
    kinds = dict.fromkeys(traps, "trap") | {goal: "goal"}
    marks = [(float(cells[i][0]), float(cells[i][1]), kind) for i, kind in kinds.items()]
    marks += [(float(SIDE), float(y), "wall") for y in range(SIDE) if y != door[1]]
    positions = np.array([cell for i, cell in enumerate(cells) if i not in ends], float)
    return from_outcomes(
        name, state=state, action=action, probability=np.ones(len(rows)), next_state=next_state,
        reward=[ends.get(s, 0.0) for s in next_state.tolist()], terminated=np.isin(next_state, list(ends)),
        start=start / start.sum(), horizon=HORIZON, layout=Layout(positions, "grid", arrows, tuple(marks)),
    )  # fmt: skip
