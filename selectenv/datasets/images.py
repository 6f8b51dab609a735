"""Image states: packed to bits, told apart by a 64-bit hash, and found again by looking."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from selectenv.errors import DatasetError
from selectenv.kernels.network.packed_images import find_rows, first_mismatch, hash_rows, pack, unpack
from selectenv.typing import BoolArray, Int32Array, IntArray, UintArray

SALTS = 8
"""Hashes to try: two different images of the same hash are a matter of one in ten million million datasets."""


@dataclass(frozen=True, eq=False)
class Images:
    """The image of each state of a dataset, by its number."""

    words: UintArray
    """[n, words] packed bits, sorted by hash."""
    shape: tuple[int, ...]
    """Of one image: rows, columns, channels."""
    salt: int = 0
    """Which hash tells them apart."""

    def __post_init__(self) -> None:
        """Refuse arrays that do not hold such images."""
        width = -(-int(np.prod(self.shape)) // 64)
        if self.words.dtype != np.uint64 or self.words.ndim != 2 or self.words.shape[1] != width:
            raise DatasetError(f"images of shape {self.shape} need {width} words of 64 bits each")

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.words)

    def __getitem__(self, numbers: int | IntArray | slice) -> BoolArray:
        """Return the images of states by number; a single number gives a single image."""
        if isinstance(numbers, int | np.integer):
            image: BoolArray = unpack(self.words[[numbers]], self.shape)[0]
            return image
        return unpack(self.words[numbers], self.shape)

    def find(self, ids: IntArray, images: BoolArray) -> Int32Array:
        """Return the numbers of images [count, *shape], -1 for those that are not among these.

        Args:
            ids: [n] the dataset's ids, which are the hashes.
            images: what to look for.
        """
        return find_rows(pack(images), np.uint64(self.salt), ids, self.words)


def deduplicate(words: UintArray) -> tuple[IntArray, Int32Array, UintArray, int]:
    """Tell rows [rows, words] apart by their hashes, and check that equal hashes are equal rows.

    Args:
        words: the rows.

    Returns:
        The distinct hashes, sorted; the number [rows] of each row among them; the distinct rows; the salt of the hash.

    Raises:
        DatasetError: every hash tried confuses two rows.
    """
    for salt in range(SALTS):
        ids, place, number = _distinct(hash_rows(words, np.uint64(salt)))
        known = words[place]
        if first_mismatch(words, number, known) < 0:
            return ids, number, known, salt
    raise DatasetError(f"{SALTS} different hashes confuse images of this dataset")


def _distinct(hashes: IntArray) -> tuple[IntArray, IntArray, Int32Array]:
    """Return distinct values, a place of each, and which of them each entry is."""
    order: NDArray[np.intp] = np.argsort(hashes)
    ordered = hashes[order]
    new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    number = np.empty(len(hashes), np.int32)
    number[order] = np.cumsum(new, dtype=np.int32) - 1
    return ordered[new], order[new], number
