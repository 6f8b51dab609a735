"""Experts of the MinAtar worlds: networks and tables that ship with the package, or user-supplied files."""

import hashlib
import os
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from selectenv.checks import did_you_mean
from selectenv.domains.minatar.games import SIDE, MinAtarWorld
from selectenv.errors import UnknownNameError, WeightsFileError
from selectenv.io.weights import load_weights
from selectenv.kernels.network.cnn import Layers, outputs
from selectenv.kernels.network.packed_images import hash_rows, pack
from selectenv.typing import BoolArray, IntArray

FOLDER = Path(__file__).parent / "weights"
SHIPPED = {"published": "{game}.npz", "tabular": "{game}-tabular.npz"}


class Expert(Protocol):
    """A policy that maps images to actions."""

    card: dict[str, Any]
    """How it was trained and what it earns."""

    @property
    def fingerprint(self) -> str:
        """A hash of its parameters."""

    def actions(self, images: BoolArray) -> IntArray:
        """Return the actions [batch] for images [batch, 10, 10, channels]."""


class NetworkExpert:
    """Takes the action with the largest output of the small convolutional network."""

    def __init__(self, arrays: dict[str, NDArray[Any]], card: dict[str, Any], world: MinAtarWorld) -> None:
        """Arrange the weights of a file as the compiled network expects them.

        Raises:
            WeightsFileError: the weights belong to another network.
        """
        channels, inner = world.shape[2], SIDE - 2
        names = ("0.weight", "0.bias", "3.weight", "3.bias", "5.weight", "5.bias")
        shapes = {
            "0.weight": (16, channels, 3, 3),
            "0.bias": (16,),
            "3.weight": (128, 16 * inner * inner),
            "3.bias": (128,),
            "5.weight": (world.n_actions, 128),
            "5.bias": (world.n_actions,),
        }
        found = {name: array.shape for name, array in arrays.items()}
        if found != shapes or any(array.dtype != np.float32 for array in arrays.values()):
            raise WeightsFileError(f"these are not the weights of an expert of {world.name}: {found}, not {shapes}")
        conv, conv_bias, dense, dense_bias, last, last_bias = (arrays[name] for name in names)
        self.card = card
        self.fingerprint = _fingerprint(arrays)
        self._layers = Layers(
            np.ascontiguousarray(conv.transpose(1, 2, 3, 0)),
            conv_bias,
            np.ascontiguousarray(dense.reshape(128, 16, inner, inner).transpose(2, 3, 1, 0)),
            dense_bias,
            last,
            last_bias,
        )

    def actions(self, images: BoolArray) -> IntArray:
        """Return the actions [batch] for images [batch, 10, 10, channels]."""
        actions: IntArray = outputs(self._layers, images).argmax(axis=1)
        return actions


class TableExpert:
    """Looks up images in a table; for an unknown image it takes the action given by the image's hash."""

    def __init__(self, arrays: dict[str, NDArray[Any]], card: dict[str, Any], world: MinAtarWorld) -> None:
        """Check and adopt the table of a file.

        Raises:
            WeightsFileError: the arrays are not such a table.
        """
        ids, action = arrays.get("ids"), arrays.get("action")
        valid = (
            ids is not None
            and action is not None
            and ids.dtype == np.int64
            and action.dtype == np.uint8
            and ids.ndim == 1
            and ids.shape == action.shape
            and len(ids) > 0
            and bool((ids[1:] > ids[:-1]).all())
            and int(action.max()) < world.n_actions
        )
        if not valid or ids is None or action is None:
            raise WeightsFileError(f"this is not the table of an expert of {world.name}")
        self.card = card
        self.fingerprint = _fingerprint(arrays)
        self._ids, self._action, self._n_actions = ids, action.astype(np.int64), world.n_actions

    def actions(self, images: BoolArray) -> IntArray:
        """Return the actions [batch] for images [batch, 10, 10, channels]."""
        hashes = hash_rows(pack(images), np.uint64(0))
        place = np.minimum(np.searchsorted(self._ids, hashes), len(self._ids) - 1)
        return np.where(self._ids[place] == hashes, self._action[place], hashes % self._n_actions)


def load_expert(world: MinAtarWorld, expert: str = "published") -> Expert:
    """Return an expert of a game.

    Args:
        world: the game.
        expert: "published", trained online with DQN; "tabular", solved exactly (Breakout only); or an .npz file
            written by `selectenv train-expert`.

    Raises:
        UnknownNameError: the game has no expert with this name.
        WeightsFileError: the file is missing, damaged, or belongs to another game.
    """
    game = world.name.lower()
    shipped = {name: FOLDER / file.format(game=game) for name, file in SHIPPED.items()}
    known = [name for name, path in shipped.items() if path.exists()]
    if not isinstance(expert, str) or not (expert in known or expert.endswith(".npz")):
        raise UnknownNameError(
            f"unknown expert {expert!r} of {world.name}; {did_you_mean(expert, known)} A path must end in .npz."
        )
    path = shipped[expert] if expert in known else Path(expert)
    try:
        modified = path.stat().st_mtime_ns
    except OSError:
        modified = 0  # loading it raises the error
    return _load(world, os.fspath(path), modified)


@lru_cache(maxsize=8)
def _load(world: MinAtarWorld, path: str, _modified: int) -> Expert:
    arrays, card = load_weights(path)
    if card.get("game") != world.name:
        raise WeightsFileError(f"{path!r} is an expert of {card.get('game')!r}, not of {world.name}")
    kind = TableExpert if "ids" in arrays else NetworkExpert
    return kind(arrays, card, world)


def _fingerprint(arrays: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
