"""Repair of damaged results stores and tuning journals: the intact parts are kept."""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from experiments.engine.store import ResultsStore, hold, intact_rows
from experiments.errors import StoreError
from selectenv.errors import OptionError
from selectenv.io.journal import JOURNAL_START, repair_journal

SQLITE_START = b"SQLite format 3\x00"


def repair(path: Path) -> str:
    """Replace a damaged file by one with its intact parts; the damaged file is kept under another name.

    Returns:
        A sentence about what was kept.

    Raises:
        OptionError: there is no such file, or it is neither a results store nor a tuning journal.
        StoreInUseError: a run is writing to the store.
    """
    try:
        with open(path, "rb") as file:
            start = file.read(max(len(SQLITE_START), len(JOURNAL_START)))
    except OSError as error:
        raise OptionError(f"{path} cannot be read ({error})") from None
    if _resembles(start, SQLITE_START) or intact_rows(path):
        return repair_store(path)
    if _resembles(start, JOURNAL_START):
        return repair_journal(path, backup_path(path))
    raise OptionError(
        f"{path} is neither a results store nor a tuning journal, the files that are stored in independent parts; "
        "a damaged dataset, network, checkpoint or saved strategy must be made again: delete it and repeat its command"
    )


def repair_store(path: Path) -> str:
    """Write the intact rows of a results store to a fresh file in its place."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as database:
        database.execute("SELECT * FROM sqlite_master").fetchall()  # completes or undoes an interrupted write
    with suppress(StoreError), ResultsStore(path) as store, store.writing():
        return f"{path} is intact: {len(store)} rows, nothing to repair"
    with hold(path):
        rows, backup, fresh = intact_rows(path), backup_path(path), path.with_name(f".{path.name}.repaired")
        fresh.unlink(missing_ok=True)
        with ResultsStore(fresh) as store:
            store.add_rows(rows)
        os.rename(path, backup)
        for ending in ("-journal", "-wal", "-shm"):  # they belong to the damaged file
            with suppress(FileNotFoundError):
                os.rename(f"{path}{ending}", f"{backup}{ending}")
        os.replace(fresh, path)
    return f"{path}: kept {len(rows)} intact rows; the damaged file is {backup}. Run the same command to make the rest"


def backup_path(path: Path) -> Path:
    """Return a free name beside ``path`` for the damaged file."""
    number = 1
    while (backup := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return backup


def _resembles(start: bytes, pattern: bytes) -> bool:
    """Return whether most bytes are those of the pattern: the first bytes may be the damaged ones."""
    same = sum(a == b for a, b in zip(start, pattern, strict=False))
    return same >= 0.75 * len(pattern)
