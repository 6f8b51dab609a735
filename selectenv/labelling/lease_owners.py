"""Owners of leases: which session of which process handed a query out, and whether that process has ended."""

import os
import platform
import uuid
from functools import cache
from pathlib import Path


def new_owner() -> str:
    """Return the name of a new session of this process."""
    return f"{_machine()} {os.getpid()} {_started(os.getpid())} {uuid.uuid4().hex}"


def has_ended(owner: str) -> bool:
    """Return whether the process of an owner ran on this machine and has ended; False if this cannot be determined."""
    machine, _, rest = owner.partition(" ")
    pid, started, *_ = [*rest.split(" "), "", ""]
    if machine != _machine() or not pid.isdigit() or os.name != "posix":
        return False
    try:
        os.kill(int(pid), 0)  # sends nothing, but fails if there is no such process
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return _started(int(pid)) != started  # the process id has been reused


@cache
def _machine() -> str:
    """Return an identifier of this machine or container that changes when it is restarted.

    Containers may share the kernel and the host name, but number their processes separately.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        processes = os.readlink("/proc/self/ns/pid")
    except OSError:
        boot = processes = "-"
    return f"{boot}/{processes}/{platform.node().replace(' ', '-')}"


def _started(pid: int) -> str:
    """Return when a process was started, "-" if the system does not tell; "ended" if it is a zombie process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return "ended" if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        return "-"
