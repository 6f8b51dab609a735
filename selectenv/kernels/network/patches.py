"""Images as numbered patches: the input of a 3 x 3 filter at each place, with each distinct patch stored once.

Images of a game are similar: the 256 images of a batch have about 16 (Breakout), 60 (Asterix, Seaquest) or 140
(Freeway) distinct patches at each place. A layer of filters is computed for distinct patches only; see `backprop`.
"""

from typing import NamedTuple

import numpy as np

from selectenv.kernels.compiled import inlined, kernel
from selectenv.kernels.rng import INCREMENT, mix
from selectenv.kernels.threads import slices
from selectenv.typing import ByteArray, Int32Array, IntArray, UintArray

REACH = 3
"""Rows and columns of a patch."""
TOGETHER = 4
"""Rows that are computed together; the number of rows of each place is a multiple of it."""


class Patches(NamedTuple):
    """The patches of all images of a dataset."""

    number: Int32Array
    """[images, places] the patch at each place, row by row."""
    first: IntArray
    """[patches + 1] range of cells of each patch."""
    cells: ByteArray
    """The cells that are set in each patch, numbered like filters [channels, 3, 3]."""


class Batch(NamedTuple):
    """The images of one update, as rows of a table of distinct patches; reused from update to update."""

    row: Int32Array
    """[size, places] the row of each image at each place; -1 for a missing image."""
    patch: Int32Array
    """[rows] the patch of each row; -1 for padding."""
    bounds: IntArray
    """[places + 1] the rows of a place are bounds[place]..bounds[place + 1] - 1."""
    seen: IntArray
    """[patches] value of `clock` when the patch was last met."""
    slot: Int32Array
    """[patches] the row of the patch at that time."""
    clock: IntArray
    """[1] number of places filled so far, over all batches."""


def find_patches(words: UintArray, shape: tuple[int, ...]) -> Patches:
    """Return the patches of packed images [count, words] of a shape (rows, columns, channels)."""
    rows, columns, channels = shape
    images = words.view(np.uint8)
    number = np.empty((len(images), (rows - REACH + 1) * (columns - REACH + 1)), np.int32)
    low, high, table, known = np.zeros(1024, np.uint64), np.zeros(1024, np.uint64), np.full(4096, -1, np.int32), 0
    for first, last in slices(len(images), 16 * (number.shape[1] + images.shape[1])):
        low, high, table, known = _number_patches(
            images[first:last], rows, columns, channels, number[first:last], low, high, table, known
        )
    return Patches(number, *_cells_of(low[:known], high[:known]))


def room(size: int, places: int) -> int:
    """Return the largest number of rows of a batch of ``size`` images."""
    return -(-size // TOGETHER) * TOGETHER * places


def new_batch(size: int, patches: Patches) -> Batch:
    """Return an empty `Batch` of ``size`` images."""
    places, distinct = patches.number.shape[1], len(patches.first) - 1
    return Batch(
        row=np.empty((size, places), np.int32),
        patch=np.empty(room(size, places), np.int32),
        bounds=np.zeros(places + 1, np.int64),
        seen=np.full(distinct, -1, np.int64),
        slot=np.empty(distinct, np.int32),
        clock=np.zeros(1, np.int64),
    )


@kernel
def fill_batch(batch: Batch, patches: Patches, images: Int32Array) -> None:
    """Fill a batch with images [size] given by number; -1 for a missing image."""
    rows = 0
    for place in range(patches.number.shape[1]):
        batch.bounds[place] = rows
        batch.clock[0] += 1
        now = batch.clock[0]
        for i in range(len(images)):
            if images[i] < 0:
                batch.row[i, place] = -1
                continue
            patch = patches.number[images[i], place]
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
    images: ByteArray,
    rows: int,
    columns: int,
    channels: int,
    number: Int32Array,
    low: UintArray,
    high: UintArray,
    table: Int32Array,
    known: int,
) -> tuple[UintArray, UintArray, Int32Array, int]:
    """Number the distinct patches in the order they are met; a patch is two words of bits, one bit per cell.

    Args:
        images: [count, bytes] packed bits, the first cell in the highest bit.
        rows: rows of an image.
        columns: columns of an image.
        channels: channels of an image, at most 14.
        number: [count, places] receives the patch numbers.
        low: the first word of each patch known so far, and room for more.
        high: the second word.
        table: hash table of patch numbers, a power of two in size; -1 where it is empty.
        known: number of patches known so far.

    Returns:
        ``low``, ``high``, ``table`` and ``known`` for the next images.
    """
    places = (rows - REACH + 1) * (columns - REACH + 1)
    here = np.zeros((places, 2), np.uint64)
    for i in range(len(images)):
        patch_words(images[i], rows, columns, channels, here)
        for place in range(places):
            one, two = here[place]
            spot = table_spot(one, two, low, high, table)
            if table[spot] < 0:
                if known == len(low):
                    low = np.concatenate((low, np.zeros(known, np.uint64)))
                    high = np.concatenate((high, np.zeros(known, np.uint64)))
                low[known], high[known] = one, two
                table[spot] = known
                known += 1
                number[i, place] = known - 1
                if 2 * known > len(table):
                    table = np.full(2 * len(table), -1, np.int32)
                    for old in range(known):
                        table[table_spot(low[old], high[old], low, high, table)] = old
            else:
                number[i, place] = table[spot]
    return low, high, table, known


@inlined
def patch_words(image: ByteArray, rows: int, columns: int, channels: int, into: UintArray) -> None:
    """Write the patches of a packed image [bytes] as two words each [places, 2]."""
    across = columns - REACH + 1
    into[:] = np.uint64(0)
    for byte in range(len(image)):
        if image[byte] == 0:
            continue
        for bit in range(8):
            cell = 8 * byte + bit
            if not (image[byte] >> (7 - bit)) & 1 or cell >= rows * columns * channels:
                continue
            r, c, k = cell // (columns * channels), cell // channels % columns, cell % channels
            for dr in range(max(0, r - rows + REACH), min(REACH, r + 1)):
                for dc in range(max(0, c - columns + REACH), min(REACH, c + 1)):
                    at = (k * REACH + dr) * REACH + dc
                    into[(r - dr) * across + c - dc, at // 64] |= np.uint64(1) << np.uint64(at % 64)


@inlined
def table_spot(one: np.uint64, two: np.uint64, low: UintArray, high: UintArray, table: Int32Array) -> np.uint64:
    """Return where the hash table holds a patch of two words, or the empty entry where it belongs."""
    last = np.uint64(len(table) - 1)
    spot = mix(mix(one) ^ (two + INCREMENT)) & last
    while table[spot] >= 0 and (low[table[spot]] != one or high[table[spot]] != two):
        spot = (spot + np.uint64(1)) & last
    return spot


@kernel
def _cells_of(low: UintArray, high: UintArray) -> tuple[IntArray, ByteArray]:
    """Return the range of set cells of each patch [patches + 1], and the cells."""
    first = np.zeros(len(low) + 1, np.int64)
    cells = np.empty(128 * len(low), np.uint8)
    for i in range(len(low)):
        first[i + 1] = append_cells(low[i], high[i], cells, first[i])
    return first, cells[: first[-1]].copy()


@inlined
def append_cells(one: np.uint64, two: np.uint64, cells: ByteArray, count: int) -> int:
    """Write the cells that are set in a patch from ``cells[count]`` on; return the new count."""
    for at in range(128):
        word = one if at < 64 else two
        if (word >> np.uint64(at % 64)) & np.uint64(1):
            cells[count] = at
            count += 1
    return count
