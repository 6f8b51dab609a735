"""Arrays of a network or a table on disk, with a card that describes their origin: plain arrays, no pickle."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from selectenv.checks import check_path
from selectenv.errors import WeightsFileError
from selectenv.io.atomic import whole_file

FORMAT = "selectenv-weights-2"
FORMAT_WITHOUT_DIGEST = "selectenv-weights"
"""The format of the files that ship with the package; stored results contain their hashes, so they must not change."""


def save_weights(
    path: str | os.PathLike[str],
    arrays: Mapping[str, NDArray[Any]],
    card: Mapping[str, Any],
    *,
    compressed: bool = True,
) -> Path:
    """Write arrays, their card and a digest of both to one file, atomically, and return its path."""
    text = json.dumps({"format": FORMAT, **card})
    columns: dict[str, Any] = {**arrays, "card": np.array(text), "digest": np.array(_digest(arrays, text))}
    with whole_file(path) as file:
        (np.savez_compressed if compressed else np.savez)(file, **columns)
    return Path(path)


def load_weights(path: str | os.PathLike[str]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays and the card of a file.

    Raises:
        WeightsFileError: the file is missing, damaged, or not written by selectenv.
    """
    name = os.fspath(check_path("path", path))
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        text, digest = str(arrays.pop("card")), arrays.pop("digest", None)
        card: dict[str, Any] = json.loads(text)
        written = card.pop("format")
        if written not in (FORMAT, FORMAT_WITHOUT_DIGEST):
            raise KeyError("format")
        intact = written == FORMAT_WITHOUT_DIGEST or str(digest) == _digest(arrays, text)
    except FileNotFoundError:
        raise WeightsFileError(f"there is no weights file {name!r}") from None
    except (KeyError, TypeError, AttributeError, IsADirectoryError):
        raise WeightsFileError(f"{name!r} is not a weights file written by selectenv, or it is damaged") from None
    except Exception as error:  # corrupt files raise unrelated exception types: those of NumPy, zipfile, zlib, ...
        raise WeightsFileError(f"{name!r} is damaged or not a weights file ({error})") from None
    if not intact:
        raise WeightsFileError(
            f"{name!r} is damaged: its content does not match its digest; delete it and make it again"
        )
    for key, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise WeightsFileError(f"{name!r} is damaged: {key} is not finite")
    return arrays, card


def _digest(arrays: Mapping[str, NDArray[Any]], card: str) -> str:
    digest = hashlib.blake2b(card.encode(), digest_size=16)
    for name, array in sorted(arrays.items()):
        found = np.asarray(array)
        digest.update(f"{name} {found.dtype.str} {found.shape}".encode())
        digest.update(np.ascontiguousarray(found).tobytes())
    return digest.hexdigest()
