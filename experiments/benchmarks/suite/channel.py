"""Messages between the benchmark and the process of a strategy: JSON and raw arrays, never pickled objects.

A message is the length of its header (4 bytes, little-endian), the header (JSON: kind, fields, and the name, type and
shape of every array), and the bytes of the arrays.
"""

import json
import math
import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.errors import ChannelClosedError, ChannelError

LARGEST_HEADER, LARGEST_ARRAYS = 1 << 20, 1 << 32
"""Bytes."""
TYPES = "biufU"
"""Kinds of NumPy's types that arrays may have: numbers and text, no Python objects."""
Arrays = dict[str, NDArray[Any]]


class Message(NamedTuple):
    """A received message."""

    kind: str
    fields: dict[str, Any]
    """Plain values, as JSON holds them."""
    arrays: Arrays


class Channel:
    """One end of a pair of pipes."""

    def __init__(self, reading: int, writing: int) -> None:
        """Use two file descriptors."""
        self._reading, self._writing = reading, writing

    def send(self, kind: str, arrays: Arrays | None = None, **fields: Any) -> None:
        """Send a message.

        Raises:
            ChannelClosedError: nobody reads it.
        """
        given = {name: np.ascontiguousarray(array) for name, array in (arrays or {}).items()}
        shapes = [[name, array.dtype.str, array.shape] for name, array in given.items()]
        header = json.dumps([kind, fields, shapes]).encode()
        parts = [len(header).to_bytes(4, "little") + header, *(array.tobytes() for array in given.values())]
        left = memoryview(b"".join(parts))
        try:
            while left:
                left = left[os.write(self._writing, left) :]
        except OSError:
            raise ChannelClosedError("the other process has ended") from None

    def receive(self) -> Message:
        """Wait for a message.

        Raises:
            ChannelClosedError: the other process has ended.
            ChannelError: what it sent is not a message.
        """
        length = int.from_bytes(self._read(4), "little")
        if length > LARGEST_HEADER:
            raise ChannelError("the strategy sent something else than a message")
        try:
            kind, fields, shapes = json.loads(self._read(length))
            described = [(str(name), np.dtype(kind_of), tuple(map(int, shape))) for name, kind_of, shape in shapes]
            sizes = [math.prod(shape) * dtype.itemsize for _, dtype, shape in described]
            wrong = not isinstance(kind, str) or not isinstance(fields, dict) or sum(sizes) > LARGEST_ARRAYS
        except (ValueError, TypeError, RecursionError) as error:
            raise ChannelError(f"the strategy sent something else than a message ({error})") from None
        if wrong or any(dtype.kind not in TYPES or min(shape, default=0) < 0 for _, dtype, shape in described):
            raise ChannelError("the strategy sent a message with something else than numbers and text")
        arrays = {
            name: np.frombuffer(self._read(size), dtype).reshape(shape)
            for (name, dtype, shape), size in zip(described, sizes, strict=True)
        }
        return Message(kind, fields, arrays)

    def _read(self, size: int) -> bytearray:
        """Return exactly ``size`` bytes; nothing is read ahead, so that a forked process can go on reading."""
        found = bytearray(size)
        view, filled = memoryview(found), 0
        while filled < size:
            count = os.readv(self._reading, [view[filled:]]) if hasattr(os, "readv") else self._read_part(view[filled:])
            if count == 0:
                raise ChannelClosedError("the other process has ended")
            filled += count
        return found

    def _read_part(self, view: memoryview) -> int:
        part = os.read(self._reading, len(view))
        view[: len(part)] = part
        return len(part)

    def close(self) -> None:
        """Close both ends."""
        for descriptor in (self._reading, self._writing):
            os.close(descriptor)
