"""The published budgets: numbers of labels behind the shares of feedback in the tables."""

FEEDBACK = (0.1, 0.3, 0.5, 0.7, 0.9)
BUDGETS = {
    "Graph": (3, 6, 9, 12, 15),
    "Tree": (3, 9, 15, 21, 27),
    "TwoRooms": (6, 15, 24, 36, 45),
    "TwoRoomsTrap": (6, 12, 21, 30, 39),
    "FrozenLake": (2, 4, 6, 8, 10),
    "CliffWalk": (3, 12, 18, 25, 33),
}
"""Numbers of labels behind each world's five shares of feedback.

Published budgets were visited in steps of 3 (FrozenLake 2). Where shares leave a choice, these steps fit the tables:
sequential-greedy under the adapted rule earns -36.4 and -23.4 with 4 and 6 labels in TwoRoomsTrap (published -23.5),
0.533 and 0.765 with 21 and 22 (0.538), and 0.185 and 0.302 with 5 and 6 in TwoRooms (0.314).
"""
ES_POPULATION_TRAP = {0.34: 15, 0.48: 21, 0.61: 27, 0.75: 33, 0.89: 39}
"""Shares and numbers of labels that only the table of ES populations uses, and only in TwoRoomsTrap."""
WORLDS = tuple(BUDGETS)


def labels_for(world: str, feedback: float) -> int:
    """Return the number of labels behind a published share of feedback.

    Raises:
        ValueError: if no published table has this share in this world.
    """
    if world == "TwoRoomsTrap" and feedback in ES_POPULATION_TRAP:
        return ES_POPULATION_TRAP[feedback]
    return BUDGETS[world][FEEDBACK.index(feedback)]


def all_budgets(world: str) -> tuple[int, ...]:
    """Return every number of labels that any published table uses in a world, in ascending order."""
    more = ES_POPULATION_TRAP.values() if world == "TwoRoomsTrap" else ()
    return tuple(sorted({*BUDGETS[world], *more}))


def percent(share: float) -> str:
    """Return a share of the states as the tables of the games print it, for example "15 %"."""
    return f"{round(100 * share)} %"


def percentage(labels: int | str) -> float:
    """Return the number in a text such as "15 %", for the axis of a figure."""
    return float(str(labels).split(maxsplit=1)[0])
