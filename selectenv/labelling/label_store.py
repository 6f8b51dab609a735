"""The file of a labelling session: one SQLite database that several processes may use at once.

It is written in WAL mode with ``synchronous=FULL``: what was committed survives a crash of the process and of the
machine. Answers are never deleted, only withdrawn. Each carries a digest, which includes the state that it is about and
is checked when it is read.
"""

import hashlib
import json
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from selectenv.errors import SessionFileError, SessionFileRemovedError
from selectenv.labelling.lease_owners import has_ended

FORMAT = 2
APPLICATION = 0x5E1EC7E5
"""Marks the file as a session; SQLite keeps this number in the header."""
BUSY_SECONDS = 60.0
"""How long a write waits for those of other processes."""
SCHEMA = """
CREATE TABLE session (settings TEXT NOT NULL, digest TEXT NOT NULL, dataset BLOB);
CREATE TABLE notes (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE choices (number INTEGER PRIMARY KEY, passed_on TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE queries (number INTEGER PRIMARY KEY, state INTEGER NOT NULL UNIQUE, skipped INTEGER NOT NULL DEFAULT 0);
CREATE TABLE leases (
    query INTEGER NOT NULL, annotator TEXT NOT NULL, until REAL NOT NULL, owner TEXT NOT NULL,
    PRIMARY KEY (query, annotator)
);
CREATE TABLE answers (
    number INTEGER PRIMARY KEY, query INTEGER NOT NULL, annotator TEXT NOT NULL, given TEXT NOT NULL,
    rewards TEXT NOT NULL, told REAL NOT NULL, digest TEXT NOT NULL, withdrawn REAL
);
CREATE UNIQUE INDEX one_answer ON answers (query, annotator) WHERE withdrawn IS NULL;
"""
TABLES = {"session", "notes", "choices", "queries", "leases", "answers"}
FAILURES = (sqlite3.Error, UnicodeError, OverflowError, MemoryError)
"""Exceptions that the sqlite3 module raises for damaged files."""
FREE = """
(SELECT COUNT(*) FROM answers AS a WHERE a.query = q.number AND a.withdrawn IS NULL)
    + (SELECT COUNT(*) FROM leases AS l WHERE l.query = q.number AND l.until > :now AND l.annotator != :annotator)
    < :answers
  AND NOT EXISTS (
    SELECT 1 FROM answers AS a WHERE a.query = q.number AND a.annotator = :annotator AND a.withdrawn IS NULL)
"""
"""Whether an annotator may work on query q: they have not answered it, and it still lacks answers."""
AVAILABLE = f"""
SELECT number, state FROM queries AS q
WHERE {FREE}
  AND NOT EXISTS (
    SELECT 1 FROM leases AS l WHERE l.query = q.number AND l.annotator = :annotator AND l.until > :now)
  AND (q.skipped > 0) = :skipped
ORDER BY q.skipped, q.number LIMIT :limit
"""


class StoredAnswer(NamedTuple):
    """A row of the answers."""

    number: int
    query: int
    annotator: str
    given: Any
    """The answer as it was given: a number, a dict or a list."""
    rewards: list[float]
    """One reward per distinct transition."""
    told: float
    """When, in seconds since the epoch."""


class Lease(NamedTuple):
    """A query that was handed out and not answered yet."""

    query: int
    annotator: str
    until: float


class LabelStore:
    """The tables of one session. Every method is one transaction, unless it is called inside `writing`."""

    def __init__(self, path: Path | None, settings: dict[str, Any] | None = None) -> None:
        """Open a file, or make a database in memory.

        Args:
            path: the file; None for a database in memory.
            settings: settings of a session in memory.

        Raises:
            SessionFileError: the file is missing, damaged, foreign or of another format.
        """
        self.path = path
        self._lock = threading.RLock()
        if path is None:
            self._database = _connect(":memory:")
            _fill(self._database, settings or {}, None)
            return
        if os.path.isdir(path):
            raise SessionFileError(f"{str(path)!r} is a directory, not the file of a session")
        if not os.path.isfile(path):
            raise SessionFileError(f"there is no session file {str(path)!r}")
        self._identity = _identity(path)
        with self._errors():
            self._database = _connect(path)
        try:
            with self._errors():
                self._check_format()
        except BaseException:
            self._database.close()
            raise

    def _check_in_place(self) -> None:
        """Raise `SessionFileRemovedError` if the name of the file no longer leads to the file that was opened."""
        if self.path is not None and _identity(self.path) != self._identity:
            raise SessionFileRemovedError(
                f"{self._name} was removed or replaced since the session was opened; this call has changed nothing"
            )

    def _check_format(self) -> None:
        self._database.execute("PRAGMA cell_size_check = ON")
        (application,) = self._database.execute("PRAGMA application_id").fetchone()
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        tables = {name for (name,) in self._database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if application != APPLICATION:
            raise SessionFileError(f"{str(self.path)!r} is not a labelling session written by selectenv")
        if version != FORMAT:
            raise SessionFileError(
                f"{str(self.path)!r} has format version {version}; this release reads version {FORMAT}"
            )
        if tables != TABLES:
            raise SessionFileError(f"{str(self.path)!r} is damaged: its tables are not those of a session")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run a transaction that no other process interferes with; it takes effect as a whole or not at all."""
        with self._lock, self._errors():
            if self._database.in_transaction:
                yield
                return
            self._check_in_place()
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._database.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors of the sqlite3 module, such as those of damaged files and full disks, into `SessionFileError`."""
        try:
            yield
        except FAILURES as error:
            raise SessionFileError(f"{self._name} cannot be used: {error}; this call has changed nothing") from None

    @property
    def _name(self) -> str:
        return "the session" if self.path is None else repr(str(self.path))

    def _all(self, statement: str, *values: Any, **named: Any) -> list[Any]:
        with self._lock, self._errors():
            return self._database.execute(statement, named or values).fetchall()

    def _run(self, statement: str, *values: Any) -> None:
        with self.writing():
            self._database.execute(statement, values)

    def _parsed(self, text: Any) -> Any:
        try:
            return json.loads(text)
        except (ValueError, TypeError) as error:
            raise SessionFileError(f"{self._name} is damaged: {error}") from None

    def settings(self) -> dict[str, Any]:
        """Return the settings of the session."""
        rows = self._all("SELECT settings, digest FROM session")
        if len(rows) != 1 or _digest(rows[0][0]) != rows[0][1]:
            raise SessionFileError(f"{self._name} is damaged: its settings do not match their digest")
        settings: dict[str, Any] = self._parsed(rows[0][0])
        return settings

    def dataset(self) -> bytes | None:
        """Return the dataset as it was stored, None if it is in a file of its own."""
        ((content,),) = self._all("SELECT dataset FROM session")
        return None if content is None else bytes(content)

    def note(self, name: str) -> Any:
        """Return a setting that may change during the session; None if it was never set."""
        rows = self._all("SELECT value FROM notes WHERE name = ?", name)
        return self._parsed(rows[0][0]) if rows else None

    def set_note(self, name: str, value: Any) -> None:
        """Set a setting that may change during the session."""
        self._run("INSERT OR REPLACE INTO notes VALUES (?, ?)", name, json.dumps(value))

    def queries(self) -> list[int]:
        """Return the numbers of the chosen states, in the order of choice: query i + 1 is about entry i."""
        rows = self._all("SELECT number, state FROM queries ORDER BY number")
        if [number for number, _ in rows] != list(range(1, len(rows) + 1)):
            raise SessionFileError(f"{self._name} is damaged: some of its queries are missing")
        return [state for _, state in rows]

    def query_of(self, state: int) -> int | None:
        """Return the query about a state, None if it was not chosen."""
        rows = self._all("SELECT number FROM queries WHERE state = ?", state)
        return rows[0][0] if rows else None

    def skipped(self) -> set[int]:
        """Return the queries that were skipped."""
        return {number for (number,) in self._all("SELECT number FROM queries WHERE skipped > 0")}

    def last_choice(self) -> tuple[int, dict[str, Any]]:
        """Return the number of choices so far, and what the last one passes on to the next.

        Raises:
            SessionFileError: it does not match its digest.
        """
        rows = self._all("SELECT number, passed_on, digest FROM choices ORDER BY number DESC LIMIT 1")
        if rows and _digest(*rows[0][:2]) != rows[0][2]:
            raise SessionFileError(f"{self._name} is damaged: choice {rows[0][0]} does not match its digest")
        return (rows[0][0], self._parsed(rows[0][1])) if rows else (0, {})

    def add_choice(self, number: int, states: list[int], passed_on: str) -> bool:
        """Add the queries of choice ``number``; return False, and add nothing, if another process made it already."""
        with self.writing():
            if self.last_choice()[0] != number - 1:
                return False
            first, values = len(self.queries()) + 1, (number, passed_on)
            self._database.execute("INSERT INTO choices VALUES (?, ?, ?)", (*values, _digest(*values)))
            self._database.executemany(
                "INSERT INTO queries (number, state) VALUES (?, ?)", list(enumerate(states, first))
            )
        return True

    def available(self, annotator: str, answers: int, limit: int, *, skipped: bool) -> list[tuple[int, int]]:
        """Return up to ``limit`` queries, with the numbers of their states, that can be handed out to ``annotator``.

        Args:
            annotator: who asks.
            answers: how many answers each query needs.
            limit: how many are wanted.
            skipped: whether to return skipped queries, in the order in which they were skipped, or only the others.
        """
        now = time.time()
        return self._all(AVAILABLE, annotator=annotator, answers=answers, limit=limit, skipped=int(skipped), now=now)

    def is_free(self, query: int, annotator: str, answers: int) -> bool:
        """Return whether ``annotator`` may work on a query that needs ``answers`` answers, or works on it already."""
        statement = f"SELECT 1 FROM queries AS q WHERE q.number = :query AND {FREE}"
        return bool(self._all(statement, query=query, annotator=annotator, answers=answers, now=time.time()))

    def lease(self, query: int, annotator: str, until: float, owner: str) -> None:
        """Hand out a query."""
        self._run("INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?)", query, annotator, until, owner)

    def release(self, query: int, annotator: str) -> None:
        """Take back a query that was handed out."""
        self._run("DELETE FROM leases WHERE query = ? AND annotator = ?", query, annotator)

    def release_of(self, owner: str) -> None:
        """Take back everything that ``owner`` handed out."""
        self._run("DELETE FROM leases WHERE owner = ?", owner)

    def release_ended(self) -> None:
        """Take back what processes of this machine handed out if they have ended since."""
        with self.writing():
            for (owner,) in self._all("SELECT DISTINCT owner FROM leases"):
                if has_ended(owner):
                    self.release_of(owner)

    def leases(self) -> list[Lease]:
        """Return the leases that have not expired, in the order of the queries."""
        rows = self._all(
            "SELECT query, annotator, until FROM leases WHERE until > ? ORDER BY query, annotator", time.time()
        )
        return [Lease(*row) for row in rows]

    def holders(self, query: int, owner: str) -> list[str]:
        """Return to whom a query is handed out.

        Leases that are kept for answers under other names are left out, and so is one without a name of the session
        ``owner`` itself.
        """
        rows = self._all("SELECT annotator, owner FROM leases WHERE query = ? AND until > ?", query, time.time())
        return sorted(annotator for annotator, by in rows if by != "" and (annotator or by != owner))

    def skip(self, query: int, annotator: str) -> None:
        """Move a query to the end of the order, and end its lease."""
        with self.writing():
            self._run("UPDATE queries SET skipped = (SELECT MAX(skipped) + 1 FROM queries) WHERE number = ?", query)
            self.release(query, annotator)

    def add_answer(self, query: int, annotator: str, given: str, rewards: list[float], *, last: bool) -> None:
        """Add an answer and end the lease of its annotator; if it is the ``last`` one of its query, end all leases."""
        with self.writing():
            ((number,),) = self._all("SELECT COALESCE(MAX(number), 0) + 1 FROM answers")
            ((state,),) = self._all("SELECT state FROM queries WHERE number = ?", query)
            values = (number, query, annotator, given, json.dumps(rewards), time.time())
            self._run("INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, NULL)", *values, _digest(*values, state))
            self._run("DELETE FROM leases WHERE query = ? AND (annotator = ? OR ?)", query, annotator, last)
            self._run("UPDATE queries SET skipped = 0 WHERE number = ?", query)

    def withdraw(self, number: int) -> None:
        """Withdraw an answer; it stays in the file."""
        self._run("UPDATE answers SET withdrawn = ? WHERE number = ?", time.time(), number)

    def version(self) -> tuple[int, int]:
        """Return the numbers of given and withdrawn answers, which change with every answer and withdrawal."""
        ((given, withdrawn),) = self._all("SELECT COUNT(*), COUNT(withdrawn) FROM answers")
        return given, withdrawn

    def answers(self, after: int = 0) -> list[StoredAnswer]:
        """Return the answers from number ``after`` + 1 on, in the order in which they were told.

        Raises:
            SessionFileError: answers are missing, or do not match their digests.
        """
        columns = "a.number, a.query, a.annotator, a.given, a.rewards, a.told, q.state, a.digest"
        tables = "answers AS a LEFT JOIN queries AS q ON q.number = a.query"
        rows = self._all(f"SELECT {columns} FROM {tables} WHERE a.number > ? ORDER BY a.number", after)
        changed = [row[0] for row in rows if _digest(*row[:-1]) != row[-1]]
        if changed or [row[0] for row in rows] != list(range(after + 1, after + len(rows) + 1)):
            what = f"answers {changed[:5]} do not match their digests" if changed else "some answers are missing"
            raise SessionFileError(f"{self._name} is damaged: {what}")
        return [
            StoredAnswer(number, query, annotator, json.loads(given), json.loads(rewards), told)
            for number, query, annotator, given, rewards, told, _, _ in rows
        ]

    def withdrawn(self) -> set[int]:
        """Return the numbers of the answers that were withdrawn."""
        return {number for (number,) in self._all("SELECT number FROM answers WHERE withdrawn IS NOT NULL")}

    def annotators_of(self, query: int) -> list[str]:
        """Return who answered a query, without withdrawn answers."""
        rows = self._all("SELECT annotator FROM answers WHERE query = ? AND withdrawn IS NULL ORDER BY number", query)
        return [annotator for (annotator,) in rows]


def create(path: Path, settings: dict[str, Any], dataset: bytes | None) -> bool:
    """Make a session file; return False, and change nothing, if there is one already.

    The file appears under its name only once it is complete.

    Raises:
        SessionFileError: it cannot be written.
    """
    try:
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.", suffix=".partial")
    except OSError as error:
        raise SessionFileError(f"{str(path)!r} cannot be written: {error}") from None
    os.close(handle)
    try:
        with closing(_connect(partial)) as database:
            database.execute("PRAGMA synchronous = FULL")
            database.execute(f"PRAGMA application_id = {APPLICATION}")
            database.execute(f"PRAGMA user_version = {FORMAT}")
            _fill(database, settings, dataset)
        os.chmod(partial, 0o644)
        try:
            os.link(partial, path)
        except FileExistsError:
            return False
        except OSError:  # a file system without hard links: an empty file reserves the name
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return False
            os.replace(partial, path)
    except (OSError, sqlite3.Error) as error:
        raise SessionFileError(f"{str(path)!r} cannot be written: {error}") from None
    finally:
        Path(partial).unlink(missing_ok=True)
    return True


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from others; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _fill(database: sqlite3.Connection, settings: dict[str, Any], dataset: bytes | None) -> None:
    """Make the tables of a new session."""
    text = json.dumps(settings)
    database.executescript(SCHEMA)
    database.execute("INSERT INTO session VALUES (?, ?, ?)", (text, _digest(text), dataset))


def _connect(path: Path | str) -> sqlite3.Connection:
    """Return a connection that leaves transactions to the caller and may be used by several threads, one at a time."""
    return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _digest(*values: Any) -> str:
    """Return a hash of values that the file stores."""
    return hashlib.blake2b(ascii(values).encode(), digest_size=16).hexdigest()
