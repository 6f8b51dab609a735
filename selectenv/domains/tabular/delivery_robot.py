"""DeliveryRobot: carry medicine and meals through a hospital; the world behind the example log.

The robot moves between 15 places on one floor: a grid of 4 x 4 cells, one of which holds the stairs. Its actions are
east, north, south, west and "open tray". In the pharmacy the tray is loaded with medicine and in the kitchen with
meals, whatever it carried before. In a ward the staff take the load and the episode terminates: ward A waits for
medicine (10) and sends meals back (-5), ward B waits for meals (10) and sends medicine back (-5), ward C has ordered
nothing and passes it on (-1). Moving onto the stairs breaks the robot (-20) and terminates the episode. All other
rewards are 0. Where a place has no neighbour, the robot stays; people who stand in the way keep it in place in one of
ten moves, but nobody stands on the stairs. Half of the episodes start at the charging dock with nothing on the tray, a
quarter in the kitchen with meals and a quarter in the pharmacy with medicine. Episodes are truncated after 20 steps.

A state is a place and a load: 45 states, numbered in the alphabetical order of their ids in the log, such as
"place=ward A, load=medicine"; actions are numbered alphabetically too.
"""

from itertools import product

import numpy as np

from selectenv.domains.layout import Layout
from selectenv.domains.tabular.world import TabularWorld, from_outcomes

FLOOR = (
    ("pharmacy", "west hall", "north hall", "ward A"),
    ("store room", "reception", "east hall", "stairs"),
    ("kitchen", "south hall", "lift", "ward B"),
    ("charging dock", "laundry", "linen room", "ward C"),
)
STAIRS = "stairs"
ACTIONS = ("east", "north", "open tray", "south", "west")
MOVES = {"east": (1, 0), "north": (0, -1), "south": (0, 1), "west": (-1, 0)}
LOADS = ("meals", "medicine", "nothing")
LOADED = {"pharmacy": "medicine", "kitchen": "meals"}
DELIVERED = {
    ("ward A", "medicine"): 10.0,
    ("ward A", "meals"): -5.0,
    ("ward B", "meals"): 10.0,
    ("ward B", "medicine"): -5.0,
    ("ward C", "meals"): -1.0,
    ("ward C", "medicine"): -1.0,
}
BROKEN = -20.0
BLOCKED = 0.1
HORIZON = 20
START = {("charging dock", "nothing"): 0.5, ("kitchen", "meals"): 0.25, ("pharmacy", "medicine"): 0.25}
PLACES = {name: (x, y) for y, row in enumerate(FLOOR) for x, name in enumerate(row)}
STATES = tuple((place, load) for place, load in product(sorted(PLACES), LOADS) if place != STAIRS)
"""Place and load of each state, by state number."""


def delivery_robot() -> TabularWorld:
    """Return the world of the delivery robot."""
    number = {state: i for i, state in enumerate(STATES)}
    rows = [
        (i, a, share, number.get(entered or ("", ""), 0), reward, entered is None)
        for i, state in enumerate(STATES)
        for a, action in enumerate(ACTIONS)
        for share, entered, reward in _outcomes(*state, action)
    ]
    state, action, probability, next_state, reward, terminated = zip(*rows, strict=True)
    side = len(FLOOR) + 1
    positions = [(PLACES[place][0] + side * LOADS.index(load), PLACES[place][1]) for place, load in STATES]
    x, y = PLACES[STAIRS]
    return from_outcomes(
        "DeliveryRobot",
        state=state,
        action=action,
        probability=probability,
        next_state=next_state,
        reward=reward,
        terminated=terminated,
        start=[START.get(state, 0.0) for state in STATES],
        horizon=HORIZON,
        layout=Layout(
            np.array(positions, float),
            "grid",
            marks=tuple((float(x + side * i), float(y), "trap") for i in range(len(LOADS))),
        ),
    )


def expert_answers() -> dict[str, dict[str, float]]:
    """Return what somebody who knows the hospital answers: by id of a state in the log, the reward of each action."""
    return {
        f"place={place}, load={load}": {
            action: sum(share * reward for share, _, reward in _outcomes(place, load, action)) for action in ACTIONS
        }
        for place, load in STATES
    }


def _outcomes(place: str, load: str, action: str) -> list[tuple[float, tuple[str, str] | None, float]]:
    """Return the probability, the next state (None if the episode terminates) and the reward of each outcome."""
    stay = (place, load)
    if action == "open tray":
        if stay in DELIVERED:
            return [(1.0, None, DELIVERED[stay])]
        return [(1.0, (place, LOADED.get(place, load)), 0.0)]
    (x, y), (dx, dy) = PLACES[place], MOVES[action]
    target = next((name for name, at in PLACES.items() if at == (x + dx, y + dy)), place)
    if target == STAIRS:
        return [(1.0, None, BROKEN)]
    return [(1 - BLOCKED, (target, load), 0.0), (BLOCKED, stay, 0.0)]
