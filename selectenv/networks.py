"""The one small convolutional network of the MinAtar worlds, and its weights on disk: plain arrays, no pickle."""

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from selectenv.atomic import whole_file
from selectenv.errors import MissingExtraError, WeightsFileError
from selectenv.typing import BoolArray

try:
    import torch
    from torch import nn
except ImportError as error:
    raise MissingExtraError(f"networks need torch ({error}): pip install 'selectenv[minatar]'") from error

SIDE, FILTERS, HIDDEN = 10, 16, 128
FORMAT = "selectenv-weights"


class SmallCnn(nn.Sequential):
    """16 filters of 3 x 3, 128 hidden units, one output an action."""

    def __init__(self, channels: int, outputs: int) -> None:
        """Build the network for pictures with so many channels."""
        super().__init__(*feature_layers(channels), nn.Linear(HIDDEN, outputs))


def feature_layers(channels: int) -> list[nn.Module]:
    """Return the layers below the outputs."""
    return [
        nn.Conv2d(channels, FILTERS, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(FILTERS * (SIDE - 2) ** 2, HIDDEN),
        nn.ReLU(),
    ]


def to_tensor(pictures: BoolArray) -> torch.Tensor:
    """Return pictures [batch, 10, 10, channels] as the network wants them: [batch, channels, 10, 10], float."""
    return torch.from_numpy(pictures).permute(0, 3, 1, 2).float()


def save_weights(path: str | os.PathLike[str], network: nn.Module, card: Mapping[str, Any]) -> Path:
    """Write the weights of a network and a card that says where they come from; whole or not at all."""
    arrays: dict[str, Any] = {name: value.detach().numpy() for name, value in network.state_dict().items()}
    arrays["card"] = np.array(json.dumps({"format": FORMAT, **card}))
    with whole_file(path) as file:
        np.savez_compressed(file, **arrays)
    return Path(path)


def load_weights(path: str | os.PathLike[str], network: nn.Module) -> dict[str, Any]:
    """Fill ``network`` with the weights of a file, and return the file's card.

    Raises:
        WeightsFileError: the file is missing, damaged, foreign, or of another network.
    """
    name = os.fspath(path)
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
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise WeightsFileError(f"{name!r} is damaged or no weights file ({error})") from None
    wanted = {key: tuple(value.shape) for key, value in network.state_dict().items()}
    found = {key: value.shape for key, value in arrays.items()}
    if wanted != found or not all(value.dtype == np.float32 for value in arrays.values()):
        raise WeightsFileError(f"{name!r} holds the weights of another network: {found}, not {wanted}")
    if not all(np.isfinite(value).all() for value in arrays.values()):
        raise WeightsFileError(f"{name!r} is damaged: its weights are not finite")
    network.load_state_dict({key: torch.from_numpy(value) for key, value in arrays.items()})
    return card
