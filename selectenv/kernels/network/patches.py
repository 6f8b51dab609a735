"""Images as numbered patches: the input of a 3 x 3 filter at each place, with each distinct patch stored once.

Images of a game are similar: the 256 images of a batch have about 16 (Breakout), 60 (Asterix, Seaquest) or 140
(Freeway) distinct patches at each place, and three quarters (Breakout), half (Asterix, Seaquest) or a quarter (Freeway)
of the images have the most frequent one. `backprop` uses both.
"""

from typing import NamedTuple

import numpy as np

from selectenv.kernels.compiled import exact_part, inlined, kernel
from selectenv.kernels.network.simd import aligned_zeros, transpose16
from selectenv.kernels.rng import INCREMENT, mix
from selectenv.kernels.threads import slices
from selectenv.typing import ByteArray, Float32Array, Int32Array, IntArray, Uint32Array, UintArray

REACH = 3
"""Rows and columns of a patch."""
CELLS = 128
"""Numbers of cells: those of a patch, at most 126, and `NO_CELL`."""
NO_CELL = CELLS - 1
"""Fills up the last word of a patch."""
BLOCK = 16
"""Images and places whose patch numbers are transposed together."""
ROW_BITS = 20
"""Bits of a row in `Batch.mark`; batches are smaller than two to the power of this."""


class Patches(NamedTuple):
    """The patches of all images of a dataset."""

    number: Int32Array
    """[images, places] the patch at each place, row by row."""
    usual: Int32Array
    """[places] the most frequent patch at each place."""
    first: IntArray
    """[patches + 1] range of words of each patch."""
    cells: Uint32Array
    """The cells that are set in each patch, numbered like filters [channels, 3, 3], four to a word."""


class Batch(NamedTuple):
    """The images of one update, as rows of a table of distinct patches; reused from update to update.

    The first row of each place is its usual patch, and the images with another one are its exceptions. Next come the
    rows that several exceptions share, then those of a single exception.
    """

    image: Int32Array
    """[size] the images by number; -1 for a missing image, which counts as one of usual patches."""
    number: Float32Array
    """[places, padded size] the bits of the number of each image's patch."""
    row_bounds: IntArray
    """[places + 1] the rows of a place are row_bounds[place]..row_bounds[place + 1] - 1."""
    first_single: IntArray
    """[places] the first row of a single exception."""
    member_bounds: Int32Array
    """[rows + 1] range of members of each row; the usual patches have none."""
    member: Int32Array
    """[exceptions] the positions in the batch of the exceptions, row by row."""
    patch: Int32Array
    """[rows] the patch of each row; the patches of a batch are numbered anew, from 0."""
    n_patches: IntArray
    """[1] number of distinct patches of the batch."""
    source: Int32Array
    """[distinct patches] their numbers among all patches."""
    cell_bounds: Int32Array
    """[distinct patches + 1] range of words of each patch."""
    cells: Uint32Array
    """The cells that are set in each patch, as in `Patches`."""
    mark: IntArray
    """[patches, 2] values of `clock` when the patch was last met, at a place and in a batch; then its row at that place
    and its number in that batch, see `ROW_BITS`."""
    clock: IntArray
    """[1] number of places and batches filled so far."""


def find_patches(words: UintArray, shape: tuple[int, ...], weight: IntArray | None = None) -> Patches:
    """Return the patches of packed images [count, words] of a shape (rows, columns, channels).

    Args:
        words: the images.
        shape: rows, columns and channels of an image.
        weight: [count] how often each image occurs; equally often by default.
    """
    rows, columns, channels = shape
    images = words.view(np.uint8)
    number = np.empty((len(images), (rows - REACH + 1) * (columns - REACH + 1)), np.int32)
    low, high, table, known = np.zeros(1024, np.uint64), np.zeros(1024, np.uint64), np.full(4096, -1, np.int32), 0
    for first, last in slices(len(images), 16 * (number.shape[1] + images.shape[1])):
        low, high, table, known = _number_patches(
            images[first:last], rows, columns, channels, number[first:last], low, high, table, known
        )
    usual = np.array([np.bincount(column, weight).argmax() for column in number.T], np.int32)
    return Patches(number, usual, *_in_words(*_cells_of(low[:known], high[:known])))


def _in_words(first: IntArray, cells: ByteArray) -> tuple[IntArray, Uint32Array]:
    """Return the cells of patches as words, at least one for each patch, and the range of words of each patch."""
    count = np.diff(first)
    bounds = np.append(0, np.cumsum(np.maximum(1, -(-count // 4))))
    padded = np.full(4 * bounds[-1], NO_CELL, np.uint8)
    padded[np.arange(len(cells)) + np.repeat(4 * bounds[:-1] - first[:-1], count)] = cells
    return bounds, padded.view(np.uint32)


def new_batch(size: int, patches: Patches, words: int = 0) -> Batch:
    """Return an empty `Batch` of ``size`` images, with room for ``words`` words per patch, by default those known."""
    places, distinct = patches.number.shape[1], len(patches.first) - 1
    most = (size + 1) * places + 1  # rows, with room for one that is written and then dropped
    return Batch(
        image=np.empty(size, np.int32),
        number=aligned_zeros(places, -(-size // BLOCK) * BLOCK),
        row_bounds=np.zeros(places + 1, np.int64),
        first_single=np.zeros(places, np.int64),
        member_bounds=np.zeros(most, np.int32),
        member=np.empty(most, np.int32),
        patch=np.empty(most, np.int32),
        n_patches=np.zeros(1, np.int64),
        source=np.empty(most, np.int32),
        cell_bounds=np.zeros(most, np.int32),
        cells=np.empty(most * (words or int(np.diff(patches.first).max())), np.uint32),
        mark=np.full((distinct, 2), -1, np.int64),
        clock=np.zeros(1, np.int64),
    )


class _Exceptions(NamedTuple):
    """The exceptions of one place, and the rows of the place in the order in which they are met."""

    position: Int32Array
    """[exceptions] the position in the batch."""
    row: Int32Array
    """[exceptions] the patch, then its row."""
    patch: Int32Array
    """[rows] the patch of each row."""
    times: Int32Array
    """[rows] its number of exceptions."""
    sorted_row: Int32Array
    """[rows] the row after sorting."""
    next_member: Int32Array
    """[rows] where the next exception of the row belongs in `Batch.member`."""


@exact_part
def fill_batch(batch: Batch, patches: Patches) -> None:
    """Find the rows and the exceptions of the images of a batch; inner loops have no branches that mispredict."""
    _turn_numbers(batch, patches)
    room = len(batch.image) + 1
    found = _Exceptions(
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.zeros(room, np.int32),
        np.empty(room, np.int32),
    )
    batch.clock[0] += 1
    start, rows, members, known = batch.clock[0] << ROW_BITS, 0, 0, 0
    for place in range(len(patches.usual)):
        count = _find_exceptions(batch, found, place, patches.usual[place])
        distinct = _find_rows(batch, found, count, patches.usual[place])
        _sort_rows(batch, found, place, distinct, members, members + count)
        for k in range(count):
            row = found.row[k]
            batch.member[found.next_member[row]] = found.position[k]
            found.next_member[row] += 1
        known = _number_patches_anew(batch, found, rows, distinct, start, known)
        rows += distinct
        members += count
        batch.row_bounds[place + 1] = rows
    batch.member_bounds[rows] = members
    batch.n_patches[0] = known
    _copy_cells(batch, patches)


@exact_part
def _turn_numbers(batch: Batch, patches: Patches) -> None:
    """Look up the patches of the images, and lay them out place by place."""
    places, width = batch.number.shape
    block = np.empty((BLOCK, places), np.int32)
    bits = block.view(np.float32)
    for first in range(0, width, BLOCK):
        for i in range(min(BLOCK, len(batch.image) - first)):
            image = batch.image[first + i]
            block[i] = patches.number[image] if image >= 0 else patches.usual
        for place in range(0, places, BLOCK):
            transpose16(bits, place, places, batch.number, place * width + first, width)


@exact_part
def _find_exceptions(batch: Batch, found: _Exceptions, place: int, usual: int) -> int:
    """List the images with another patch than the usual one; return their number."""
    number, count = batch.number.view(np.int32), np.uint64(0)
    for i in range(len(batch.image)):
        found.position[count], found.row[count] = i, number[place, i]
        count += np.uint64(number[place, i] != usual)
    return int(count)


@exact_part
def _find_rows(batch: Batch, found: _Exceptions, count: int, usual: int) -> int:
    """Number the patches of a place in the order in which they are met, after the usual one; return their number."""
    batch.clock[0] += 1
    now, distinct, found.patch[0] = batch.clock[0] << ROW_BITS, 1, usual
    for k in range(count):
        patch = found.row[k]
        known = batch.mark[patch, 0] - now
        new = known < 0
        row = distinct if new else known
        batch.mark[patch, 0] = now + row
        found.patch[distinct] = patch
        found.times[row] = 1 if new else found.times[row] + 1
        found.row[k] = row
        distinct += new
    return distinct


@exact_part
def _sort_rows(batch: Batch, found: _Exceptions, place: int, distinct: int, members: int, end: int) -> None:
    """Put the rows that several exceptions share before those of a single one, and share out the range of members."""
    rows = batch.row_bounds[place]
    low, high = 1, distinct - 1
    batch.member_bounds[rows] = members
    for r in range(1, distinct):
        several = found.times[r] > 1
        row = low if several else high
        found.sorted_row[r] = row
        found.next_member[r] = members if several else end - (distinct - high)
        batch.member_bounds[rows + row] = found.next_member[r]
        members += found.times[r] if several else 0
        low += several
        high -= not several
    batch.first_single[place] = rows + low


@exact_part
def _number_patches_anew(batch: Batch, found: _Exceptions, rows: int, distinct: int, start: int, known: int) -> int:
    """Number the patches of a place within the batch, of which ``known`` are known; return how many are known now."""
    for r in range(distinct):
        patch = found.patch[r]
        number = batch.mark[patch, 1] - start
        new = number < 0
        number = known if new else number
        batch.mark[patch, 1] = start + number
        batch.source[known] = patch
        batch.patch[rows + found.sorted_row[r]] = number
        known += new
    return known


@exact_part
def _copy_cells(batch: Batch, patches: Patches) -> None:
    """Copy the cells of the distinct patches of a batch."""
    words = 0
    for p in range(batch.n_patches[0]):
        patch = batch.source[p]
        for at in range(patches.first[patch], patches.first[patch + 1]):
            batch.cells[words] = patches.cells[at]
            words += 1
        batch.cell_bounds[p + 1] = words


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
