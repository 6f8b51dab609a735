"""Optuna journals whose lines carry their number and a digest, so that damage is detected on reading.

A line is what Optuna writes, JSON, with one more entry: ``"check": [line, trials, studies, digest]``, where ``trials``
and ``studies`` count those created so far. Optuna and optuna-dashboard read such files as they are. Whole lines that
are missing at the end of the file are not detected: the file then equals an earlier version of itself, and searches
repeat the missing trials.
"""

import hashlib
import json
import os
import re
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from filelock import FileLock

from selectenv.errors import JournalError, MissingExtraError
from selectenv.io.atomic import whole_file

if TYPE_CHECKING:
    import optuna

JOURNAL_START = b'{"op_code":0,"worker_id":"'
LINE = re.compile(rb'(\{.+),"check":\[(\d+),(\d+),(\d+),"([0-9a-f]{32})"\]\}\n', re.DOTALL)
TAIL = 1 << 12
CREATE_STUDY, CREATE_TRIAL, SET_TRIAL_STATE = 0, 4, 6
"""Codes of Optuna's journal operations."""
FAILED = 3
FINISHED = (1, 2, 3)
"""States of trials: complete, pruned, failed."""


class Checks(NamedTuple):
    """The number of a line, and the numbers of trials and studies created so far."""

    line: int
    trials: int
    studies: int

    def following(self, operation: int) -> "Checks":
        """Return the checks of the next line."""
        return Checks(
            self.line + 1, self.trials + (operation == CREATE_TRIAL), self.studies + (operation == CREATE_STUDY)
        )


START = Checks(0, 0, 0)


def open_journal(path: str | os.PathLike[str]) -> "optuna.storages.JournalStorage":
    """Return Optuna's storage in a journal whose lines are checked; a file that does not exist is created.

    Raises:
        JournalError: the file is damaged, or was written by something else.
        MissingExtraError: Optuna is not installed.
    """
    try:
        import optuna
        from optuna.storages.journal import BaseJournalBackend
    except ModuleNotFoundError:
        raise MissingExtraError("tuning needs Optuna: pip install 'selectenv[meta]'") from None

    class CheckedBackend(BaseJournalBackend):
        """A journal file with checked lines."""

        def __init__(self) -> None:
            self._place = (0, 0)  # number and offset of the next line to read

        def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
            """Yield the operations from a line on; a line that another process is still writing is skipped."""
            number, offset = self._place if self._place[0] <= log_number_from else (0, 0)
            with open(target, "rb") as file:
                file.seek(offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        return
                    number, offset = number + 1, offset + len(line)
                    self._place = number, offset
                    if number > log_number_from:
                        checks, log = _parsed(line)
                        if checks is None or checks.line != number:
                            raise _damage(target, number)
                        yield log

        def append_logs(self, logs: list[dict[str, Any]]) -> None:
            """Write operations; each gets its number and digest."""
            with FileLock(f"{target}.filelock"), open(target, "a+b") as file:
                checks, lines = _last_checks(file, target), []
                for log in logs:
                    checks = checks.following(log["op_code"])
                    lines.append(_encoded(log, checks))
                file.write(b"".join(lines))
                file.flush()
                os.fsync(file.fileno())

    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
        check_journal(target)
    except OSError as error:
        raise JournalError(f"the tuning journal {os.fspath(path)!r} cannot be used ({error})") from None
    return optuna.storages.JournalStorage(CheckedBackend())


def check_journal(path: Path) -> None:
    """Check every line of a journal.

    Raises:
        JournalError: a line is damaged or missing.
    """
    for number, line in enumerate(_lines(path), start=1):
        checks, _ = _parsed(line)
        if checks is None or checks.line != number:
            raise _damage(path, number)


def repair_journal(path: Path, backup: Path) -> str:
    """Write the intact part of a journal to a fresh file in its place; the damaged one moves to ``backup``.

    A damaged line belongs to one of the trials that were running at that moment, and it is unknown to which: all of
    them are marked as failed, so that a search runs as many new ones instead. Finished trials are kept.

    Returns:
        A sentence about what was kept.
    """
    try:
        check_journal(path)
    except JournalError:
        pass
    else:
        return f"{path} is intact: nothing to repair"
    kept = _intact_operations(path)
    checks, lines = START, []
    for log in kept:
        checks = checks.following(log["op_code"])
        lines.append(_encoded(log, checks))
    finished = sum(log["op_code"] == SET_TRIAL_STATE and log["state"] in FINISHED[:2] for log in kept)
    os.rename(path, backup)
    with whole_file(path) as file:
        file.write(b"".join(lines))
    return f"{path}: kept {finished} finished trials; the damaged file is {backup}. Run the same command for the rest"


def _intact_operations(path: Path) -> list[dict[str, Any]]:
    """Return the operations of intact lines, and placeholders for trials whose creation was lost."""
    kept: list[dict[str, Any]] = []
    known, running, spoilt = START, set[int](), set[int]()
    study = 0
    for line in _lines(path):
        checks, log = _parsed(line)
        if checks is None or checks.line <= known.line:
            continue
        if checks.line > known.line + 1:
            before = checks.trials - (log["op_code"] == CREATE_TRIAL)
            if checks.studies - (log["op_code"] == CREATE_STUDY) > known.studies:
                break  # the study that the next lines belong to is lost
            lost = range(known.trials, before)
            kept += [_failed_state(trial) for trial in sorted(running)]
            kept += [_failed_trial(study) for _ in lost]
            spoilt |= running | set(lost)
            running = set()
        known, operation = checks, log["op_code"]
        study = log.get("study_id", study)
        trial = log.get("trial_id")
        if operation == CREATE_TRIAL:
            trial = checks.trials - 1
            if log.get("state") not in FINISHED:
                running.add(trial)
        elif operation == SET_TRIAL_STATE and log["state"] in FINISHED:
            running.discard(trial)
        if trial not in spoilt:
            kept.append(log)
    return kept + [_failed_state(trial) for trial in sorted(running)]


def _failed_state(trial: int) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    return {
        "op_code": SET_TRIAL_STATE,
        "worker_id": "repair",
        "trial_id": trial,
        "state": FAILED,
        "values": None,
        "datetime_complete": now,
    }


def _failed_trial(study: int) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    return {
        "op_code": CREATE_TRIAL,
        "worker_id": "repair",
        "study_id": study,
        "datetime_start": now,
        "state": FAILED,
        "value": None,
        "values": None,
        "datetime_complete": now,
        "distributions": {},
        "params": {},
        "user_attrs": {},
        "system_attrs": {},
        "intermediate_values": {},
    }


def _lines(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        yield from file


def _encoded(log: dict[str, Any], checks: Checks) -> bytes:
    content = json.dumps(log, separators=(",", ":"))[:-1].encode()
    numbers = f"{checks.line},{checks.trials},{checks.studies}"
    return content + f',"check":[{numbers},"{_digest(content, numbers.encode())}"]}}\n'.encode()


def _digest(content: bytes, numbers: bytes) -> str:
    return hashlib.blake2b(content + b"," + numbers, digest_size=16).hexdigest()


def _parsed(line: bytes) -> tuple[Checks | None, dict[str, Any]]:
    """Return the checks and the operation of a line; no checks if it is damaged."""
    match = LINE.fullmatch(line)
    if match is None or _digest(match[1], b",".join(match.group(2, 3, 4))) != match[5].decode():
        return None, {}
    return Checks(int(match[2]), int(match[3]), int(match[4])), json.loads(match[1] + b"}")


def _last_checks(file: IO[bytes], path: Path) -> Checks:
    """Return the checks of the last line.

    Raises:
        JournalError: the last line is damaged.
    """
    end, size = file.seek(0, os.SEEK_END), TAIL
    if end == 0:
        return START
    while True:
        file.seek(max(0, end - size))
        lines = file.read(size).splitlines(keepends=True)
        if len(lines) > 1 or size >= end:
            break
        size *= 2
    checks, _ = _parsed(lines[-1])
    if checks is None:
        raise _damage(path)
    return checks


def _damage(path: Path, number: int | None = None) -> JournalError:
    where = "its last line" if number is None else f"line {number}"
    return JournalError(
        f"the tuning journal {os.fspath(path)!r} cannot be used: {where} is damaged, or was not written by this "
        f"project. None of its trials is used. `selectenv repair {path}` keeps the intact trials; or choose a new file"
    )
