"""The results store: one SQLite file, written in small batches, by one run at a time."""

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.engine.cell import RESULTS_VERSION, Cell, Result
from experiments.errors import StoreError, StoreInUseError

FORMAT = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS results (
    key TEXT PRIMARY KEY, study TEXT NOT NULL, world TEXT NOT NULL, strategy TEXT NOT NULL, seed INTEGER NOT NULL,
    settings TEXT NOT NULL, version INTEGER NOT NULL, records TEXT NOT NULL, seconds REAL NOT NULL
)
"""
DEFAULT_PATH = Path("out/results.sqlite")


class ResultsStore:
    """Results by the content of their cells; what is written stays written, whatever happens to the process."""

    def __init__(self, path: str | os.PathLike[str] = DEFAULT_PATH) -> None:
        """Open or make the file.

        Raises:
            StoreError: the file is damaged, foreign or from a newer version.
        """
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(self.path, timeout=10)
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
            tables = {name for (name,) in self._database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if version > FORMAT:
                raise StoreError(
                    f"{self.path} was written by a newer version (format {version}, this one reads {FORMAT})"
                )
            if tables and (version == 0 or "results" not in tables):
                raise StoreError(f"{self.path} is a database, but not one of results")
            with self._database:
                self._database.execute(SCHEMA)
                self._database.execute(f"PRAGMA user_version = {FORMAT}")
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self.path} is damaged or not a results file ({error})") from None
        except OSError as error:
            raise StoreError(f"{self.path} cannot be opened ({error})") from None

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> "ResultsStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the file for one run; a killed process lets go by itself.

        Raises:
            StoreInUseError: another run holds it.
        """
        with open(f"{self.path}.lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise StoreInUseError(
                    f"another run is writing to {self.path}: wait for it, or choose another file"
                ) from None
            yield

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return the cells that have no result yet, each once, in order."""
        known = {key for (key,) in self._database.execute("SELECT key FROM results")}
        wanted = {cell.key: cell for cell in cells}
        return [cell for key, cell in wanted.items() if key not in known]

    def add(self, results: Iterable[Result]) -> None:
        """Write results, all of them or none.

        Raises:
            StoreError: they could not be written, for example because the disk is full.
        """
        rows = [
            (
                result.cell.key, result.cell.study, result.cell.world, result.cell.strategy, result.cell.seed,
                json.dumps(result.cell.settings, sort_keys=True), RESULTS_VERSION, json.dumps(result.records),
                result.seconds,
            )
            for result in results
        ]  # fmt: skip
        try:
            with self._database:
                self._database.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        except sqlite3.Error as error:
            raise StoreError(
                f"results could not be written to {self.path}: {error}; what was written before is safe"
            ) from None

    def results(self, cells: Iterable[Cell]) -> list[Result]:
        """Return the stored results of these cells, in their order."""
        found = {}
        for key, records, seconds in self._database.execute("SELECT key, records, seconds FROM results"):
            found[key] = records, seconds
        unique = {cell.key: cell for cell in cells}
        return [Result(cell, json.loads(found[key][0]), found[key][1]) for key, cell in unique.items() if key in found]
