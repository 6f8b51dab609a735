"""The results store: one SQLite file, written in small batches, by one run at a time; every row carries a digest.

A manifest beside the rows holds their number and the exclusive or of their digests, so that missing rows are
detected as well as changed ones. Damage raises `StoreError`; `selectenv repair` keeps the intact rows.
"""

import hashlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from experiments.engine.cell import RESULTS_VERSION, Cell, Result
from experiments.engine.sqlite_pages import PAGE, stored_records
from experiments.errors import StoreError, StoreInUseError
from selectenv.io.progress import show

FORMAT = 2
SCHEMA = """
CREATE TABLE results (
    key TEXT PRIMARY KEY, study TEXT NOT NULL, world TEXT NOT NULL, strategy TEXT NOT NULL, seed INTEGER NOT NULL,
    settings TEXT NOT NULL, version INTEGER NOT NULL, records TEXT NOT NULL, seconds REAL NOT NULL, digest TEXT NOT NULL
) WITHOUT ROWID
"""
MANIFEST = "CREATE TABLE manifest (number INTEGER NOT NULL, digest TEXT NOT NULL)"
COLUMNS = ("key", "study", "world", "strategy", "seed", "settings", "version", "records", "seconds", "digest")
FORMAT_1_COLUMNS = COLUMNS[:-1]
NO_ROWS = "0" * 32
DEFAULT_PATH = Path("out/results.sqlite")
SHOWN_ROWS = 5
NOT_DAMAGE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_FULL,
}
UNREADABLE = (sqlite3.Error, ValueError, TypeError, OverflowError, MemoryError)
"""Exceptions with which the sqlite3 module responds to damaged files."""

Row = tuple[Any, ...]
"""The values of `COLUMNS`."""


class ResultsStore:
    """Results by the content of their cells; results that were written survive a crash of the process."""

    def __init__(self, path: str | os.PathLike[str] = DEFAULT_PATH) -> None:
        """Open the file, or create it.

        Raises:
            StoreError: the file is damaged, foreign or from a newer version, or cannot be opened.
        """
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not self.path.exists():
                _create(self.path)
            empty = self.path.stat().st_size == 0
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"{self.path} cannot be opened ({error})") from None
        if empty:
            raise StoreError(f"{self.path} is damaged: it is empty. Delete it to start with a fresh file")
        try:
            self._database = sqlite3.connect(self.path, timeout=10)
            self._database.text_factory = _decoded
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be opened ({error})") from None
        try:
            self._check_format()
        except UNREADABLE as error:
            self.close()
            raise self._failure(error) from None
        except BaseException:
            self.close()
            raise

    def _check_format(self) -> None:
        self._database.execute("PRAGMA cell_size_check = ON")
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        tables = {name for (name,) in self._database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "results" not in tables:
            raise StoreError(f"{self.path} is a database, but not a results store (or its schema is damaged)")
        columns = tuple(row[1] for row in self._database.execute("PRAGMA table_info(results)"))
        if version == 1 and tables == {"results"} and columns == FORMAT_1_COLUMNS:
            self._upgrade()
        elif version > FORMAT:
            raise StoreError(
                f"{self.path} was written by a newer version (format {version}, this one reads {FORMAT}), or its "
                f"header is damaged: then `selectenv repair {self.path}` keeps what is intact"
            )
        elif version != FORMAT or tables != {"results", "manifest"} or columns != COLUMNS:
            raise self._damaged("its header or its schema is not that of a results store")

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> "ResultsStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the file for one run; the lock of a killed process is released by the system.

        Raises:
            StoreInUseError: another run holds it.
            StoreError: the file is damaged.
        """
        with hold(self.path):
            try:
                found = self._database.execute("PRAGMA quick_check(1)").fetchone()
            except UNREADABLE as error:
                raise self._failure(error) from None
            if found != ("ok",):
                raise self._damaged(f"SQLite reports {str(found[0])!a}")
            yield

    def __len__(self) -> int:
        """Return the number of results, after a check of all of them.

        Raises:
            StoreError: the file is damaged.
        """
        return len(self._rows())

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Return the cells that have no result yet, each once, in order.

        Raises:
            StoreError: the file is damaged.
        """
        known = self._rows()
        wanted = {cell.key: cell for cell in cells}
        return [cell for key, cell in wanted.items() if key not in known]

    def results(self, cells: Iterable[Cell]) -> list[Result]:
        """Return the stored results of these cells, in their order.

        Raises:
            StoreError: the file is damaged.
        """
        found = self._rows()
        unique = {cell.key: cell for cell in cells}
        return [Result(cell, json.loads(found[key][7]), found[key][8]) for key, cell in unique.items() if key in found]

    def cells(self, study: str) -> list[Cell]:
        """Return the cells of a study that have results, in the order of their content.

        Raises:
            StoreError: the file is damaged.
        """
        found = [
            Cell(study, row[2], row[3], row[4], json.loads(row[5])) for row in self._rows().values() if row[1] == study
        ]
        return sorted(found, key=lambda cell: (cell.world, cell.strategy, cell.seed, json.dumps(cell.settings)))

    def add(self, results: Iterable[Result]) -> None:
        """Write results, all of them or none.

        Raises:
            StoreError: they could not be written, for example because the disk is full.
        """
        rows = []
        for result in results:
            cell, settings = result.cell, json.dumps(result.cell.settings, sort_keys=True)
            identity = (cell.key, cell.study, cell.world, cell.strategy, cell.seed, settings, RESULTS_VERSION)
            rows.append(with_digest((*identity, json.dumps(result.records), float(result.seconds))))
        self.add_rows(rows)

    def add_rows(self, rows: Iterable[Row]) -> None:
        """Write rows with digests, all of them or none.

        Raises:
            StoreError: they could not be written.
        """
        try:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                _insert(self._database, rows)
        except UNREADABLE as error:
            if isinstance(error, sqlite3.Error) and _code(error) not in NOT_DAMAGE:
                raise self._failure(error) from None
            raise StoreError(
                f"results could not be written to {self.path}: {error}; what was written before is safe"
            ) from None

    def rows(self) -> list[Row]:
        """Return all rows, after a check of every digest.

        Raises:
            StoreError: the file is damaged.
        """
        return list(self._rows().values())

    def _rows(self) -> dict[str, Row]:
        """Return all rows by key, after a check of every digest."""
        try:
            self._database.execute("BEGIN")  # rows and manifest of the same moment
            try:
                rows = self._database.execute(f"SELECT {', '.join(COLUMNS)} FROM results").fetchall()
                manifest = self._database.execute("SELECT number, digest FROM manifest").fetchall()
            finally:
                self._database.rollback()
        except UNREADABLE as error:
            raise self._failure(error) from None
        changed = [row for row in rows if not is_intact(row)]
        if changed:
            named = ", ".join(f"{row[1]!a} {row[2]!a}/{row[3]!a} seed {row[4]!a}" for row in changed[:SHOWN_ROWS])
            more = f" and {len(changed) - SHOWN_ROWS} more" if len(changed) > SHOWN_ROWS else ""
            raise self._damaged(f"{len(changed)} of {len(rows)} rows do not match their digests ({named}{more})")
        if manifest != [(len(rows), _combined(row[-1] for row in rows))]:
            raise self._damaged(f"its {len(rows)} rows are not those that were written: some are missing")
        return {row[0]: row for row in rows}

    def _failure(self, error: BaseException) -> StoreError:
        """Return the `StoreError` to raise for an error of the sqlite3 module."""
        if isinstance(error, StoreError):
            return error
        if isinstance(error, sqlite3.Error) and _code(error) in NOT_DAMAGE:
            return StoreError(
                f"{self.path} cannot be used now ({error}): check its permissions, and whether another program uses it"
            )
        return self._damaged(f"{error}")

    def _damaged(self, what: str) -> StoreError:
        try:
            intact = len(intact_rows(self.path))
        except (OSError, MemoryError):
            intact = 0
        keep = (
            f"`selectenv repair {self.path}` keeps the {intact} intact rows in a fresh file; the same run then makes "
            "the others again"
            if intact
            else "it has no intact rows: move it away to start with a fresh file"
        )
        return StoreError(f"{self.path} is damaged or not a results file: {what}. None of its results is used. {keep}")

    def _upgrade(self) -> None:
        """Turn a file of format 1, whose rows have no digests, into one of this format."""
        with hold(self.path), self._database:
            self._database.execute("BEGIN IMMEDIATE")
            rows = self._database.execute(f"SELECT {', '.join(FORMAT_1_COLUMNS)} FROM results").fetchall()
            for row in rows:
                if not _is_sound(row):
                    raise StoreError(
                        f"{self.path} is damaged: the row {row[0]!a} does not belong to its cell. It has format 1, "
                        "without digests, so intact rows cannot be identified: move it away and run again"
                    )
            self._database.execute("DROP TABLE results")
            _make_tables(self._database)
            _insert(self._database, (with_digest(row) for row in rows))
        show(f"{self.path}: upgraded from format 1; its {len(rows)} rows are protected by digests from now on")


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """Hold the lock of a results file.

    Raises:
        StoreInUseError: another run holds it.
        StoreError: the lock file cannot be made.
    """
    lock = FileLock(f"{path}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise StoreInUseError(f"another run is writing to {path}: wait for it, or choose another file") from None
    except OSError as error:
        raise StoreError(f"{path} cannot be locked ({error})") from None
    try:
        yield
    finally:
        lock.release()


def with_digest(values: Row) -> Row:
    """Return a row of the store: the values and their digest."""
    return (*values, _digest(values))


def is_intact(row: Row) -> bool:
    """Return whether the values of a row match its digest."""
    return len(row) == len(COLUMNS) and _digest(row[:-1]) == row[-1]


def intact_rows(path: Path) -> list[Row]:
    """Return the intact rows of a file, damaged or not, each key once."""
    rows: dict[str, Row] = {}
    for values in stored_records(path):
        if len(values) == len(COLUMNS) and isinstance(values[8], int | float):
            row: Row = (*values[:8], float(values[8]), values[9])  # SQLite stores 2.0 as 2
            if is_intact(row):
                rows[row[0]] = row
    return list(rows.values())


def _digest(values: Row) -> str:
    return hashlib.blake2b(ascii(values).encode(), digest_size=16).hexdigest()


def _combined(digests: Iterable[str], start: str = NO_ROWS) -> str:
    """Return the exclusive or of digests: it depends on the rows, but not on their order."""
    total = int(start, 16)
    for digest in digests:
        total ^= int(digest, 16)
    return f"{total:032x}"


def _insert(database: sqlite3.Connection, rows: Iterable[Row]) -> None:
    ((number, combined),) = database.execute("SELECT number, digest FROM manifest").fetchall()
    for row in rows:
        replaced = database.execute("SELECT digest FROM results WHERE key = ?", row[:1]).fetchall()
        combined = _combined([row[-1], *(digest for (digest,) in replaced)], combined)
        number += 1 - len(replaced)
        database.execute(f"INSERT OR REPLACE INTO results VALUES ({', '.join('?' * len(COLUMNS))})", row)
    database.execute("UPDATE manifest SET number = ?, digest = ?", (number, combined))


def _make_tables(database: sqlite3.Connection) -> None:
    database.execute(SCHEMA)
    database.execute(MANIFEST)
    database.execute("INSERT INTO manifest VALUES (0, ?)", (NO_ROWS,))
    database.execute(f"PRAGMA user_version = {FORMAT}")


def _create(path: Path) -> None:
    """Make an empty store; it appears under its name only when it is whole, and never replaces another file."""
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
    os.close(handle)
    try:
        with closing(sqlite3.connect(partial)) as database:
            database.execute(f"PRAGMA page_size = {PAGE}")
            with database:
                database.execute("BEGIN")
                _make_tables(database)
        os.chmod(partial, 0o644)
        try:
            os.link(partial, path)
        except FileExistsError:
            pass  # another process made it in the meantime
        except OSError:  # a file system without hard links
            os.replace(partial, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(partial)


def _is_sound(row: Row) -> bool:
    """Return whether a row of format 1 parses and belongs to its cell."""
    key, study, world, strategy, seed, settings, version, records, seconds = row
    try:
        cell = Cell(study, world, strategy, seed, json.loads(settings))
        return (
            isinstance(json.loads(records), list)
            and isinstance(seconds, float)
            and (version != RESULTS_VERSION or cell.key == key)
        )
    except (ValueError, TypeError):
        return False


def _decoded(text: bytes) -> str:
    """Decode text, damaged or not: the digest reveals the damage, and the error can name the row."""
    return text.decode("utf-8", "surrogateescape")


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary result code."""
    return int(getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_ERROR) & 0xFF
