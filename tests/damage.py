"""Damaged copies of files: single bytes flipped, and ends or pieces that are missing."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from tests.stress import repetitions

T = TypeVar("T")


def damaged_copies(content: bytes, seed: int = 0, sample: int = 40) -> Iterator[bytes]:
    """Yield copies with one changed byte each, then some that are cut off or lack a piece."""
    rng = random.Random(seed)
    for _ in range(repetitions(sample, 600)):
        copy = bytearray(content)
        copy[rng.randrange(len(copy))] ^= rng.randrange(1, 256)
        yield bytes(copy)
    for _ in range(repetitions(sample // 4, 100)):
        yield content[: rng.randrange(len(content))]
    for _ in range(repetitions(sample // 8, 50)):
        first = rng.randrange(len(content))
        yield content[:first] + content[first + rng.randrange(1, 300) :]


def attempt(load: Callable[[], T], error: type[Exception], path: Path) -> T | None:
    """Return what ``load`` returns, or None after an error of this type that names the file; fail after any other."""
    try:
        return load()
    except error as raised:
        message = str(raised)
    assert str(path) in message
    return None
