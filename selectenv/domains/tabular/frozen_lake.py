"""FrozenLake: cross slippery ice to the goal without falling into a hole (Gymnasium's FrozenLake).

The four actions are left, down, right, up. On slippery ice a move goes the intended way or to either side, with
probability 1/3 each. Reaching the goal pays 1; the goal and the holes terminate the episode, which is truncated after
100 steps. Any map that Gymnasium's FrozenLake accepts can be used. On the standard 4x4 map the published data came from
a hand-made expert.
"""

from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np

from selectenv.checks import check_flag, shown
from selectenv.domains.layout import grid_layout
from selectenv.domains.tabular.world import TabularWorld, from_toy_text
from selectenv.errors import WorldError

HORIZON = 100
LEFT, DOWN, RIGHT, UP = range(4)
EXPERT = {
    0: (DOWN, RIGHT),
    1: (RIGHT,),
    2: (DOWN,),
    3: (LEFT,),
    4: (DOWN,),
    6: (DOWN,),
    8: (RIGHT,),
    9: (DOWN, RIGHT),
    10: (DOWN,),
    13: (RIGHT,),
    14: (RIGHT,),
}
STANDARD = [b"SFFF", b"FHFH", b"FFFH", b"HFFG"]


def frozen_lake(desc: list[str] | None = None, map_name: str | None = "4x4", is_slippery: bool = True) -> TabularWorld:
    """Return FrozenLake on one of Gymnasium's maps or on one of your own.

    Args:
        desc: rows of a map of your own, of the letters "S" (start), "F" (frozen), "H" (hole) and "G" (goal).
        map_name: a map of Gymnasium, "4x4" or "8x8", if there is no ``desc``.
        is_slippery: whether moves go to either side with probability 1/3 each.
    """
    if desc is None and map_name is None:
        raise WorldError("without a map Gymnasium would generate one at random: pass desc or map_name")
    check_flag("is_slippery", is_slippery, WorldError)
    try:
        env: Any = gym.make("FrozenLake-v1", desc=desc, map_name=map_name, is_slippery=is_slippery)
    except Exception as error:  # Gymnasium does not check maps
        raise WorldError(
            f"Gymnasium's FrozenLake does not accept this map: desc={shown(desc)}, map_name={shown(map_name)} ({error})"
        ) from None
    letters = env.unwrapped.desc
    flat = letters.ravel()
    kinds = {b"G": "goal", b"H": "trap"}
    marks = {int(cell): kinds[flat[cell]] for cell in np.flatnonzero(np.isin(flat, list(kinds)))}
    standard = is_slippery and [b"".join(row) for row in letters] == STANDARD
    world = from_toy_text(env, name="FrozenLake", horizon=HORIZON, expert=EXPERT if standard else None)
    return replace(world, layout=grid_layout(world.ids, letters.shape[1], "left-down-right-up", marks))
