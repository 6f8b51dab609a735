"""Time and memory to load logs of ten million rows from files, each in a fresh process."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from experiments.cli.tables import table
from selectenv.datasets.arrow_columns import require

ROWS = 10_000_000
EPISODE_LENGTH = 25
TARGET_SECONDS = 60
TARGET_GIBIBYTES = 4
LOAD = """
import sys, time
import selectenv
from experiments.benchmarks.timing import peak_memory
function, path = sys.argv[1:]
began, used = time.perf_counter(), time.process_time()
data = getattr(selectenv, function)(
    path, state=["place", "load", "battery"], action="action", episode="trip", time="step", bins={"battery": 5}
)
seconds, processor = time.perf_counter() - began, time.process_time() - used
print(seconds, processor, peak_memory() / 1024, len(data), data.n_states)
"""


def bench_logs() -> None:
    """Print the seconds and the peak memory of loading a CSV file and a Parquet file, beside the limits.

    Raises:
        MissingExtraError: PyArrow is not installed.
    """
    rows, states = [], ""
    with tempfile.TemporaryDirectory() as folder:
        for function, path in _files(Path(folder)).items():
            ran = subprocess.run(
                [sys.executable, "-c", LOAD, function, str(path)],
                check=True,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            *numbers, size, states = ran.stdout.split()
            assert int(size) == ROWS
            seconds, processor, gibibytes = (f"{float(number):.1f}" for number in numbers)
            rows.append((function, seconds, TARGET_SECONDS, processor, gibibytes, TARGET_GIBIBYTES))
    print(f"\nLogs of {ROWS:,} rows in trips of {EPISODE_LENGTH} steps, {int(states):,} states of three columns\n")
    print(table(("loading with", "seconds", "limit", "processor seconds", "peak memory in GiB", "limit"), rows))


def _files(folder: Path) -> dict[str, Path]:
    """Write the same log to a CSV file and a Parquet file; return the files by the function that reads them."""
    arrow = require("pyarrow")
    rng = np.random.default_rng(0)
    row = np.arange(ROWS)

    def text(names: list[str]) -> Any:
        return arrow.array(names).take(arrow.array(rng.integers(len(names), size=ROWS)))

    log = arrow.table(
        {
            "trip": row // EPISODE_LENGTH,
            "step": row % EPISODE_LENGTH,
            "place": text([f"corridor {i}, floor {i % 7}" for i in range(200)]),
            "load": text(["meals", "medicine", "nothing", "laundry", "post"]),
            "battery": rng.random(ROWS),
            "action": text(["east", "north", "open tray", "south", "west"]),
        }
    )
    require("pyarrow.csv").write_csv(log, folder / "log.csv")
    require("pyarrow.parquet").write_table(log, folder / "log.parquet")
    return {"from_csv": folder / "log.csv", "from_parquet": folder / "log.parquet"}
