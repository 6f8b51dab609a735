"""The example log: 5,000 rows of a delivery robot in a hospital, without rewards, as a CSV file in the package."""

import csv
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from selectenv.datasets.tabular_collection import collect, dataset_spec
from selectenv.domains.tabular.delivery_robot import ACTIONS, STATES, delivery_robot

ROWS = 5_000
EXPERT_SHARE = 0.4
SEED = 3
"""The first seed with which the log visits every state."""
BEGIN = datetime(2025, 3, 3, 6)
STEP = timedelta(seconds=30)
PAUSE = timedelta(minutes=5)
COLUMNS = ("trip", "time", "place", "load", "action")
PATH = Path(__file__).with_name("logs") / "delivery_robot.csv"


def example_log() -> Path:
    """Return the path of the example log, a CSV file with the columns trip, time, place, load and action.

    A delivery robot carries medicine and meals to the wards of a hospital, often with little skill. A trip that was
    stopped ends with a row without an action. `selectenv.domains.tabular.delivery_robot` is the world behind the log.
    """
    return PATH


def write_example_log(path: Path = PATH) -> None:
    """Play the trips and write the log; the same seed writes the same bytes."""
    world = delivery_robot()
    spec = dataset_spec(world, expert_share=EXPERT_SHARE, mixture="all", expert="optimal", size=ROWS, seed=SEED)
    data = collect(world, spec)
    rows: list[list[object]] = []
    time = BEGIN
    for trip, first in enumerate(np.flatnonzero(data.episode_start)):
        last = first + int((data.terminated | data.truncated)[first:].argmax())
        visits = [(data.state[t], ACTIONS[data.action[t]]) for t in range(first, last + 1)]
        if data.truncated[last]:
            visits.append((data.next_state[last], ""))
        for state, action in visits:
            rows.append([trip, time, *STATES[state], action])
            time += STEP
        time += PAUSE
    if rows[ROWS][0] == rows[ROWS - 1][0]:  # the log ends in the middle of a trip
        rows[ROWS - 1][-1] = ""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows[:ROWS]])
