"""How often repetitive tests repeat: a sample in `make test`, the full count in `make stress`."""

import os


def repetitions(sample: int, full: int) -> int:
    """Return ``full`` if `SELECTENV_STRESS` is 1, else ``sample``."""
    return full if os.environ.get("SELECTENV_STRESS") == "1" else sample
