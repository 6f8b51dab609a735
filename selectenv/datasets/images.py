"""Image states: packed into bits, identified by a 64-bit hash, and verified by comparison."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selectenv.errors import DatasetError
from selectenv.kernels.network.packed_images import find_rows, first_mismatch, hash_rows, pack, unpack
from selectenv.typing import BoolArray, Int32Array, IntArray, UintArray

SALTS = 8
"""Number of hash functions to try; about one in 10^13 datasets has two different images with the same hash."""


@dataclass(frozen=True, eq=False)
class Images:
    """The image of each state of a dataset, indexed by state number."""

    words: UintArray
    """[n, words] packed bits, sorted by hash."""
    shape: tuple[int, ...]
    """Shape of one image: rows, columns, channels."""
    salt: int = 0
    """Salt of the hash function."""

    def __post_init__(self) -> None:
        """Reject arrays that cannot hold such images."""
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
        """Return the state numbers [count] of images [count, *shape]; -1 for unknown images.

        Args:
            ids: [n] the ids of the dataset, which are the hashes.
            images: the images to find.
        """
        return find_rows(pack(images), np.uint64(self.salt), ids, self.words)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, as they are stored."""
        return {"images": self.words, "image_shape": np.array([*self.shape, self.salt])}


def take_images(arrays: dict[str, Any]) -> Images:
    """Remove the images from the arrays of a file and return them."""
    *shape, salt = arrays.pop("image_shape").tolist()
    return Images(arrays.pop("images"), tuple(shape), salt)


def deduplicate(words: UintArray) -> tuple[IntArray, Int32Array, UintArray, int]:
    """Find the unique rows of ``words`` by hashing, and verify that rows with equal hashes are equal.

    Args:
        words: [rows, words] packed bits.

    Returns:
        The sorted unique hashes; the index [rows] of each row among them; the unique rows; the salt of the hash.

    Raises:
        DatasetError: two different rows have the same hash for every salt.
    """
    for salt in range(SALTS):
        ids, place, number = _distinct(hash_rows(words, np.uint64(salt)))
        known = words[place]
        if first_mismatch(words, number, known) < 0:
            return ids, number, known, salt
    raise DatasetError(f"two different images of this dataset have the same hash, for each of {SALTS} hash functions")


def _distinct(hashes: IntArray) -> tuple[IntArray, IntArray, Int32Array]:
    """Return the sorted unique values, an index of each in ``hashes``, and for each entry the index of its value."""
    order: NDArray[np.intp] = np.argsort(hashes)
    ordered = hashes[order]
    new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    number = np.empty(len(hashes), np.int32)
    number[order] = np.cumsum(new, dtype=np.int32) - 1
    return ordered[new], order[new], number
