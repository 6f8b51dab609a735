"""Named random streams, derived from a seed and the identity of a task: independent of workers and of their order."""

import hashlib
import json

import numpy as np

Identity = str | int | float | None


def _words(seed: int, identity: tuple[Identity, ...]) -> bytes:
    text = json.dumps([int(seed), *identity])
    return hashlib.blake2b(text.encode(), digest_size=32).digest()


def seed_word(seed: int, *identity: Identity) -> np.uint64:
    """Return the 64-bit seed of a compiled stream."""
    return np.uint64(int.from_bytes(_words(seed, identity)[:8], "little"))


def generator(seed: int, *identity: Identity) -> np.random.Generator:
    """Return the NumPy generator of a stream."""
    return np.random.default_rng(np.frombuffer(_words(seed, identity), "<u4"))
