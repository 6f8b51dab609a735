"""Checks of available memory and disk space, made before long work starts."""

import os
import shutil
from pathlib import Path

from selectenv.errors import ResourceError


def available_memory() -> int | None:
    """Return the bytes of memory that can still be used; None if the system does not report it."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def require_memory(needed: int, what: str) -> None:
    """Raise `ResourceError` if less memory than ``needed`` bytes is available for ``what``."""
    available = available_memory()
    if available is not None and available < needed:
        raise ResourceError(f"{what} needs {mebibytes(needed)} of memory; {mebibytes(available)} are available")


def require_disk(needed: int, folder: Path, what: str) -> None:
    """Raise `ResourceError` if less than ``needed`` bytes is free where ``folder`` is, or will be."""
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < needed:
        raise ResourceError(f"{what} needs {mebibytes(needed)} on disk in {folder}; {mebibytes(free)} are free")


def mebibytes(size: int) -> str:
    """Return a size in bytes as text, in MiB."""
    return f"{size / 2**20:,.0f} MiB"
