"""CliffWalk: walk along a cliff from the left to the right of a 4 x 12 grid (Gymnasium's CliffWalking).

The four actions are up, right, down, left and never slip. Every step costs 1; stepping off the cliff costs 100 and
leads back to the start (cell 36); entering the goal (cell 47) terminates the episode, which is truncated after 100
steps. The best return is -13. The published data came from a hand-made expert that goes right or down in every row
above the one next to the cliff.
"""

from dataclasses import replace

import gymnasium as gym

from selectenv.domains.layout import grid_layout
from selectenv.domains.tabular.world import TabularWorld, from_toy_text

HORIZON = 100
ROWS, COLUMNS = 4, 12
START, GOAL = 36, 47
UP, RIGHT, DOWN, _ = range(4)


def _expert(cell: int) -> tuple[int, ...]:
    """Return the published expert's actions at a cell."""
    row, column = divmod(cell, COLUMNS)
    if cell == START:
        return (UP,)
    if column == COLUMNS - 1:
        return (DOWN,)
    return (RIGHT,) if row == ROWS - 2 else (RIGHT, DOWN)


def cliff_walk() -> TabularWorld:
    """Return CliffWalk."""
    env = gym.make("CliffWalking-v1")
    expert = {cell: _expert(cell) for cell in range(START + 1)}
    world = from_toy_text(env, name="CliffWalk", horizon=HORIZON, expert=expert)
    marks = dict.fromkeys(range(START + 1, GOAL), "trap") | {GOAL: "goal"}
    return replace(world, layout=grid_layout(world.ids, COLUMNS, "up-right-down-left", marks))
