"""Arrays of a network or a table on disk, with a card that says where they come from: plain arrays, no pickle."""

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

FORMAT = "selectenv-weights"


def save_weights(
    path: str | os.PathLike[str],
    arrays: Mapping[str, NDArray[Any]],
    card: Mapping[str, Any],
    *,
    compressed: bool = True,
) -> Path:
    """Write arrays and their card to one file; it is there whole or not at all."""
    columns: dict[str, Any] = {**arrays, "card": np.array(json.dumps({"format": FORMAT, **card}))}
    with whole_file(path) as file:
        (np.savez_compressed if compressed else np.savez)(file, **columns)
    return Path(path)


def load_weights(path: str | os.PathLike[str]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the arrays and the card of a file.

    Raises:
        WeightsFileError: the file is missing, damaged or foreign.
    """
    name = os.fspath(check_path("path", path))
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        card: dict[str, Any] = json.loads(str(arrays.pop("card")))
        if card.pop("format") != FORMAT:
            raise KeyError("format")
    except FileNotFoundError:
        raise WeightsFileError(f"there is no weights file {name!r}") from None
    except (KeyError, TypeError, AttributeError, IsADirectoryError):
        raise WeightsFileError(f"{name!r} is no weights file written by selectenv") from None
    except Exception as error:  # damage has many names: NumPy, zipfile and zlib each raise their own
        raise WeightsFileError(f"{name!r} is damaged or no weights file ({error})") from None
    for key, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise WeightsFileError(f"{name!r} is damaged: {key} is not finite")
    return arrays, card
