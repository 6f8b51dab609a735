"""Valid calls of what brings data into `selectenv`, and takes them out."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import pandas as pd

import selectenv
from tests.odd_arguments import small_objects as small
from tests.odd_arguments.judge import Call

LOG = {
    "e": [0, 0, 0, 1, 1],
    "t": [0, 1, 2, 0, 1],
    "s": ["a", "b", "a", "b", "c"],
    "x": [0.5, 1.5, 0.5, 2.5, 0.5],
    "a": ["go", "stop", "go", "go", "go"],
    "n": ["b", "a", "c", "c", "a"],
    "y": [1.5, 0.5, 0.5, 0.5, 0.5],
    "d": [0, 0, 1, 0, 0],
    "c": [0, 0, 0, 0, 1],
    "r": [0.0, 1.0, 2.0, 3.0, 4.0],
}


def frame() -> pd.DataFrame:
    return pd.DataFrame(LOG)


def csv_file() -> Path:
    path = small.folder() / "log.csv"
    frame().to_csv(path, index=False)
    return path


def parquet_file() -> Path:
    path = small.folder() / "log.parquet"
    frame().to_parquet(path)
    return path


COLUMNS: dict[str, Callable[[], Any]] = {
    "state": lambda: ["s", "x"],
    "action": lambda: "a",
    "episode": lambda: "e",
    "time": lambda: "t",
    "next_state": lambda: ["n", "y"],
    "terminated": lambda: "d",
    "truncated": lambda: "c",
    "reward": lambda: "r",
    "bins": lambda: {"x": 2},
    "missing": lambda: "unknown",
}
EPISODE: dict[str, Callable[[], Any]] = {
    "states": lambda: ["a", "b", "a"],
    "actions": lambda: [0, 1],
    "rewards": lambda: [0.0, 1.0],
    "terminated": lambda: True,
    "truncated": lambda: False,
}


def used(make: Callable[..., Any], **arguments: Any) -> Any:
    """Make a dataset and use it as its first user would."""
    data = make(**arguments)
    data.to_frame()
    return selectenv.make_problem(dataset=data).learn([0])


def from_episode(**episode: Any) -> Any:
    return selectenv.from_episodes([episode])


def from_gymnasium(**arguments: Any) -> Any:
    if isinstance(arguments["steps"], int) and arguments["steps"] > 1000:
        arguments["steps"] = 1000  # nobody waits for the others
    return selectenv.from_gymnasium(**arguments)


def to_frame(dataset: Any, library: Any) -> Any:
    return dataset.to_frame(library)


CALLS = [
    Call("from_dataframe", partial(used, selectenv.from_dataframe), {"frame": frame, **COLUMNS}),
    Call("from_csv", partial(used, selectenv.from_csv), {"path": csv_file, **COLUMNS, "delimiter": lambda: ","}),
    Call("from_parquet", partial(used, selectenv.from_parquet), {"path": parquet_file, **COLUMNS}),
    Call(
        "from_episodes",
        partial(used, selectenv.from_episodes),
        {"episodes": lambda: [{name: make() for name, make in EPISODE.items()}], "bins": lambda: None},
    ),
    Call("an episode", partial(used, from_episode), EPISODE),
    Call(
        "from_gymnasium",
        partial(used, from_gymnasium),
        {
            "env": lambda: gym.make("FrozenLake-v1"),
            "policy": lambda: None,
            "steps": lambda: 50,
            "seed": lambda: 0,
            "bins": lambda: None,
        },
        gymnasium=True,
    ),
    Call("dataset.to_frame", to_frame, {"library": lambda: "polars"}, fixed={"dataset": small.dataset}),
]
