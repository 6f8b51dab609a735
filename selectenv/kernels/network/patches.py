"""Pictures as numbered patches: what a 3 x 3 filter sees at each place, each distinct patch stored once.

Games repeat themselves: among the 256 pictures of a batch a place shows about 16 (Breakout), 60 (Asterix, Seaquest) or
140 (Freeway) different patches. A layer that looks at patches has to be computed only for those; see `training`.
"""

from typing import NamedTuple

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.rng import INCREMENT, mix
from selectenv.typing import ByteArray, Int32Array, IntArray, UintArray

REACH = 3
"""Rows and columns of a patch."""
TOGETHER = 4
"""Rows that are computed together: each place has a multiple of them."""


class Patches(NamedTuple):
    """The patches of every picture of a dataset."""

    number: Int32Array
    """[pictures, places] the patch seen at each place, row by row."""
    first: IntArray
    """[patches + 1] where the cells of each patch begin."""
    cells: ByteArray
    """The cells that are set in a patch, numbered as filters [channels, 3, 3] are, patch after patch."""


class Batch(NamedTuple):
    """Pictures of one step of training, as rows of a table of distinct patches: room that is used again and again."""

    row: Int32Array
    """[size, places] the row that a picture has at a place; -1 where there is no picture."""
    patch: Int32Array
    """[rows] the patch of each row; -1 for rows that only fill up."""
    bounds: IntArray
    """[places + 1] the rows of a place are bounds[place]..bounds[place + 1] - 1."""
    seen: IntArray
    """[patches] when a patch was last met."""
    slot: Int32Array
    """[patches] its row then."""
    clock: IntArray
    """[1]"""


def find_patches(words: UintArray, shape: tuple[int, ...]) -> Patches:
    """Return the patches of packed pictures [count, words] of a shape (rows, columns, channels)."""
    rows, columns, channels = shape
    number, low, high = _number_patches(words.view(np.uint8), rows, columns, channels)
    return Patches(number, *_cells_of(low, high))


def room(size: int, places: int) -> int:
    """Return how many rows a batch of so many pictures can take."""
    return -(-size // TOGETHER) * TOGETHER * places


def new_batch(size: int, patches: Patches) -> Batch:
    """Return room for a batch of so many pictures."""
    places, distinct = patches.number.shape[1], len(patches.first) - 1
    return Batch(
        np.empty((size, places), np.int32), np.empty(room(size, places), np.int32), np.zeros(places + 1, np.int64),
        np.full(distinct, -1, np.int64), np.empty(distinct, np.int32), np.zeros(1, np.int64),
    )  # fmt: skip


@kernel
def fill_batch(batch: Batch, patches: Patches, pictures: Int32Array) -> None:
    """Enter pictures [size] by number; -1 for none."""
    rows = 0
    for place in range(patches.number.shape[1]):
        batch.bounds[place] = rows
        batch.clock[0] += 1
        now = batch.clock[0]
        for i in range(len(pictures)):
            if pictures[i] < 0:
                batch.row[i, place] = -1
                continue
            patch = patches.number[pictures[i], place]
            if batch.seen[patch] != now:
                batch.seen[patch] = now
                batch.slot[patch] = rows
                batch.patch[rows] = patch
                rows += 1
            batch.row[i, place] = batch.slot[patch]
        while rows % TOGETHER:
            batch.patch[rows] = -1
            rows += 1
    batch.bounds[-1] = rows


@kernel
def _number_patches(
    pictures: ByteArray, rows: int, columns: int, channels: int
) -> tuple[Int32Array, UintArray, UintArray]:
    """Number the distinct patches in the order they are met; a patch is two words of bits, one a cell.

    Args:
        pictures: [count, bytes] packed bits, the first cell in the highest bit.
        rows: of a picture.
        columns: of a picture.
        channels: of a picture, at most 14.

    Returns:
        Patch numbers [count, places], and the two words of each patch.
    """
    across = columns - REACH + 1
    places = (rows - REACH + 1) * across
    number = np.empty((len(pictures), places), np.int32)
    low, high = np.zeros(1024, np.uint64), np.zeros(1024, np.uint64)
    size = np.uint64(4096)
    table = np.full(4096, -1, np.int32)
    known = 0
    here = np.zeros((places, 2), np.uint64)
    for i in range(len(pictures)):
        here[:] = np.uint64(0)
        for byte in range(pictures.shape[1]):
            if pictures[i, byte] == 0:
                continue
            for bit in range(8):
                cell = 8 * byte + bit
                if not (pictures[i, byte] >> (7 - bit)) & 1 or cell >= rows * columns * channels:
                    continue
                r, c, k = cell // (columns * channels), cell // channels % columns, cell % channels
                for dr in range(max(0, r - rows + REACH), min(REACH, r + 1)):
                    for dc in range(max(0, c - columns + REACH), min(REACH, c + 1)):
                        at = (k * REACH + dr) * REACH + dc
                        here[(r - dr) * across + c - dc, at // 64] |= np.uint64(1) << np.uint64(at % 64)
        for place in range(places):
            one, two = here[place]
            spot = mix(mix(one) ^ (two + INCREMENT)) & (size - np.uint64(1))
            while table[spot] >= 0 and (low[table[spot]] != one or high[table[spot]] != two):
                spot = (spot + np.uint64(1)) & (size - np.uint64(1))
            if table[spot] < 0:
                if known == len(low):
                    low = np.concatenate((low, np.zeros(known, np.uint64)))
                    high = np.concatenate((high, np.zeros(known, np.uint64)))
                low[known], high[known] = one, two
                table[spot] = known
                known += 1
                number[i, place] = known - 1
                if 2 * np.uint64(known) > size:
                    size *= np.uint64(2)
                    table = np.full(np.int64(size), -1, np.int32)
                    for old in range(known):
                        spot = mix(mix(low[old]) ^ (high[old] + INCREMENT)) & (size - np.uint64(1))
                        while table[spot] >= 0:
                            spot = (spot + np.uint64(1)) & (size - np.uint64(1))
                        table[spot] = old
            else:
                number[i, place] = table[spot]
    return number, low[:known].copy(), high[:known].copy()


@kernel
def _cells_of(low: UintArray, high: UintArray) -> tuple[IntArray, ByteArray]:
    """Return where the set cells of each patch begin [patches + 1], and the cells."""
    first = np.zeros(len(low) + 1, np.int64)
    cells = np.empty(128 * len(low), np.uint8)
    count = 0
    for i in range(len(low)):
        for at in range(128):
            word = low[i] if at < 64 else high[i]
            if (word >> np.uint64(at % 64)) & np.uint64(1):
                cells[count] = at
                count += 1
        first[i + 1] = count
    return first, cells[:count].copy()
