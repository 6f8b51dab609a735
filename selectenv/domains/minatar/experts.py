"""Experts of the MinAtar worlds: networks and tables that ship with the package, or user-supplied files.

The card of an expert names the action set that it was trained with: `actions`, by default "minimal". Its choices are
translated to the action numbers of the world; an action that the world does not have has no effect in the game and
becomes the no-op.
"""

import hashlib
import os
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from selectenv.checks import did_you_mean
from selectenv.domains.minatar.games import ACTION_SETS, SIDE, MinAtarWorld, action_set
from selectenv.errors import UnknownNameError, WeightsFileError
from selectenv.io.weights import load_weights
from selectenv.kernels.network.cnn import Layers, outputs
from selectenv.kernels.network.packed_images import hash_rows, pack
from selectenv.typing import BoolArray, IntArray

FOLDER = Path(__file__).parent / "weights"
SHIPPED = {
    "published": "{game}.npz",
    **{f"published-{seed}": f"{{game}}-{seed}.npz" for seed in range(1, 5)},
    "tabular": "{game}-tabular.npz",
}
"""File of each shipped expert by name. "published" was trained with seed 0, "published-1" with seed 1, and so on."""


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
        self._actions = _translation(card, world)
        channels, inner, n_actions = world.shape[2], SIDE - 2, len(self._actions)
        names = ("0.weight", "0.bias", "3.weight", "3.bias", "5.weight", "5.bias")
        shapes = {
            "0.weight": (16, channels, 3, 3),
            "0.bias": (16,),
            "3.weight": (128, 16 * inner * inner),
            "3.bias": (128,),
            "5.weight": (n_actions, 128),
            "5.bias": (n_actions,),
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
        actions: IntArray = self._actions[outputs(self._layers, images).argmax(axis=1)]
        return actions


class TableExpert:
    """Looks up images in a table; for an unknown image it takes the action given by the image's hash."""

    def __init__(self, arrays: dict[str, NDArray[Any]], card: dict[str, Any], world: MinAtarWorld) -> None:
        """Check and adopt the table of a file.

        Raises:
            WeightsFileError: the arrays are not such a table.
        """
        self._actions = _translation(card, world)
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
            and int(action.max()) < len(self._actions)
        )
        if not valid or ids is None or action is None:
            raise WeightsFileError(f"this is not the table of an expert of {world.name}")
        self.card = card
        self.fingerprint = _fingerprint(arrays)
        self._ids, self._action = ids, action.astype(np.int64)

    def actions(self, images: BoolArray) -> IntArray:
        """Return the actions [batch] for images [batch, 10, 10, channels]."""
        hashes = hash_rows(pack(images), np.uint64(0))
        place = np.minimum(np.searchsorted(self._ids, hashes), len(self._ids) - 1)
        chosen = np.where(self._ids[place] == hashes, self._action[place], hashes % len(self._actions))
        actions: IntArray = self._actions[chosen]
        return actions


def load_expert(world: MinAtarWorld, expert: str = "published") -> Expert:
    """Return an expert of a game.

    Args:
        world: the game.
        expert: "published", trained online with DQN; in Breakout also "published-1" to "published-4", the same with
            other seeds, and "tabular", solved exactly; or an .npz file written by `selectenv train-expert`.

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


def _translation(card: dict[str, Any], world: MinAtarWorld) -> IntArray:
    """Return the action number in the world of each action of an expert.

    Raises:
        WeightsFileError: the card names an action set that does not exist.
    """
    actions = card.get("actions", "minimal")
    if actions not in ACTION_SETS:
        raise WeightsFileError(f"the card of this expert names the action set {actions!r}; allowed: all, minimal")
    theirs, ours = action_set(world.name, actions), world.action_numbers
    # An action outside the minimal set has no effect: it is the no-op, which comes first in every set.
    return np.array([ours.index(number) if number in ours else 0 for number in theirs])


def _fingerprint(arrays: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
