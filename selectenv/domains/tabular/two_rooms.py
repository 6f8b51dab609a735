"""TwoRooms: walk from anywhere in the left room through one door to the far corner of the right room.

Two rooms of 5 x 5 cells lie side by side; a single door cell joins their middle rows, 51 free cells in total, numbered
row by row. The actions up, down, left and right are deterministic; moving into a wall leaves the state unchanged.
Entering the last cell (50, bottom right) pays 1 and terminates the episode; all other rewards are 0. Episodes start
uniformly in the left room and are truncated after 20 steps. In TwoRoomsTrap, entering one of six trap cells pays -100
and terminates the episode.
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
    """Build the world; the goal and the traps terminate episodes."""
    door = (SIDE, SIDE // 2)
    cells = [(x, y) for y in range(SIDE) for x in range(2 * SIDE + 1) if x != SIDE or (x, y) == door]
    number = {cell: i for i, cell in enumerate(cells)}
    goal = len(cells) - 1
    terminal = {goal: 1.0} | dict.fromkeys(traps, TRAP_REWARD)
    arrows = GRID_ARROWS["up-down-left-right"]
    rows = [
        (i, a, number.get((x + dx, y + dy), i))
        for i, (x, y) in enumerate(cells)
        if i not in terminal
        for a, (dx, dy) in enumerate(arrows)
    ]
    state, action, next_state = (np.array(column) for column in zip(*rows, strict=True))
    start = np.array([x < SIDE and i not in terminal for i, (x, y) in enumerate(cells)], float)
    kinds = dict.fromkeys(traps, "trap") | {goal: "goal"}
    marks = [(float(cells[i][0]), float(cells[i][1]), kind) for i, kind in kinds.items()]
    marks += [(float(SIDE), float(y), "wall") for y in range(SIDE) if y != door[1]]
    positions = np.array([cell for i, cell in enumerate(cells) if i not in terminal], float)
    return from_outcomes(
        name,
        state=state,
        action=action,
        probability=np.ones(len(rows)),
        next_state=next_state,
        reward=[terminal.get(s, 0.0) for s in next_state.tolist()],
        terminated=np.isin(next_state, list(terminal)),
        start=start / start.sum(),
        horizon=HORIZON,
        layout=Layout(positions, "grid", arrows, tuple(marks)),
    )
