"""learned: a selector that was trained on random worlds and labels states in any other world without an evaluator."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from agents.base import Taxonomy
from agents.errors import SavedAgentError
from agents.learned.feature_context import SelectorAgent
from agents.learned.moves import MOVES, moves_of
from agents.learned.state_features import ALL_NAMES
from agents.registry import register
from selectenv.checks import check_instance, check_path, did_you_mean
from selectenv.errors import WeightsFileError
from selectenv.io.weights import load_weights
from selectenv.typing import Float32Array
from selectenv.view import SelectionView

FOLDER = Path(__file__).parent / "weights"
"""Selectors that ship with the package: the default, and five training seeds of the first round with three of an
ablation without termination features."""
SHIPPED = "messages"
"""The default, which sees features of the data's behaviour and passes messages between states."""
FIRST = "seed-2"
"""The default of the first round: the best of its five in random worlds held out from training."""
MOST_STATES = 2_000
"""In larger worlds the default plays with the weights of the first round, whose features need no fit of their own."""
ROWS = 48
"""States whose layers are computed together."""
MOST = 4096
"""Largest width and number of rounds that are read from a file."""


@register("learned")
@dataclass
class LearnedSelector(SelectorAgent):
    """Scores every state with a small network and labels the best; torch is not needed to play.

    `selectenv train-selector` trains the network on random worlds, with the return that each possible label would lead
    to as the target; none of the published worlds is among them.
    """

    weights: str = SHIPPED
    """Name of a selector that ships with the package, such as "seed-1", or a file from `selectenv train-selector`."""

    name = "learned"
    version = 3
    taxonomy = Taxonomy(test_loop="closed", training="none", evaluator="never")

    def __post_init__(self) -> None:
        """Read the weights."""
        self._load(self.weights)

    def _load(self, weights: str) -> None:
        self._parts, self.card = read_selector(selector_path(weights))
        self._without, self._names = tuple(self.card["without"]), tuple(self.card["features"])

    def begin(self, view: SelectionView) -> None:
        """Compute the features of the data."""
        check_instance("view", view, SelectionView)
        if self.weights == SHIPPED:
            self._load(FIRST if view.dataset.n_states > MOST_STATES else SHIPPED)
        super().begin(view)

    def score_features(self, features: Float32Array) -> Float32Array:
        """Return the scores [n], computed without torch."""
        assert self._context is not None
        moves = moves_of(self._context.structure.dataset) if rounds_of(self._parts) else None
        return score_states(self._parts, features, moves)


@register("learned-v1")
@dataclass
class FirstSelector(LearnedSelector):
    """The first selector of this kind: its features say nothing of the data's behaviour, and it passes no messages."""

    weights: str = FIRST
    """As for `learned`."""

    version = 2


def selector_path(weights: str | os.PathLike[str]) -> Path:
    """Return the file of a selector that ships with the package, or the path as it is.

    Raises:
        SavedAgentError: there is no such selector and no such file.
    """
    path, shipped = check_path("weights", weights), sorted(file.stem for file in FOLDER.glob("*.npz"))
    if str(weights) in shipped:
        return FOLDER / f"{weights}.npz"
    if not os.path.exists(path):
        hint = did_you_mean(str(weights), shipped)
        raise SavedAgentError(f"there is no selector {str(weights)!r}, neither shipped nor as a file; {hint}")
    return path


def score_states(
    parts: dict[str, NDArray[Any]], features: Float32Array, moves: csr_array | None = None
) -> Float32Array:
    """Return the scores [n], equal to those of the network in `agents.learned.message_scorer`.

    Args:
        parts: the layers.
        features: [n, features] of all states.
        moves: the matrices of the dataset; needed if the network passes messages.
    """

    def layer(name: str, *inputs: NDArray[Any]) -> NDArray[Any]:
        return linear(inputs, parts[f"{name}.weight"], parts[f"{name}.bias"])

    def pooled() -> NDArray[Any]:
        return np.concatenate([code.sum(axis=0) / count, code.max(axis=0)])

    seen = features[:, :1]
    count = max(float(seen.sum()), 1.0)
    code = np.maximum(layer("encode.2", np.maximum(layer("encode.0", features), 0)), 0) * seen
    for number in range(rounds_of(parts)):
        assert moves is not None
        received = (moves @ code).reshape(len(MOVES), *code.shape)
        change = layer(f"message.{number}", code, *received) + parts[f"pool.{number}.weight"] @ pooled()
        code = code + np.maximum(change, 0) * seen
    weight, width = parts["score.0.weight"], code.shape[1]
    beside = weight[:, width:] @ pooled() + parts["score.0.bias"]  # the same for all states
    inner = np.maximum(linear([code], weight[:, :width], beside), 0)
    scores: Float32Array = layer("score.2", inner)[:, 0]
    return scores


def linear(inputs: Sequence[NDArray[Any]], weight: NDArray[Any], bias: NDArray[Any]) -> NDArray[Any]:
    """Return a linear layer [n, outputs] of inputs [n, width] that stand side by side.

    Products are so small that the linear algebra library does not start threads for them: those would wait for each
    other longer than they work, and results would depend on their number.
    """
    found = np.repeat(bias[None], len(inputs[0]), axis=0)
    start = 0
    for part in inputs:
        block = weight[:, start : start + part.shape[1]].T
        for row in range(0, len(part), ROWS):
            found[row : row + ROWS] += part[row : row + ROWS] @ block
        start += part.shape[1]
    return found


def rounds_of(parts: dict[str, NDArray[Any]]) -> int:
    """Return the number of rounds in which states exchange messages."""
    return sum(name.startswith("pool.") for name in parts)


def read_selector(path: str | os.PathLike[str]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the layers and the card of a selector.

    Raises:
        SavedAgentError: the file is damaged or contains another network.
        OSError: there is no such file.
    """
    return _read(os.fspath(path), Path(path).stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _read(path: str, _modified: int) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    try:
        arrays, card = load_weights(path)
    except WeightsFileError as error:
        raise SavedAgentError(str(error)) from None
    hidden, names = card.get("hidden"), card.get("features")
    sizes = [hidden, card.get("inner", hidden), card.get("rounds", 0)]  # networks of the first round lack the latter
    known = isinstance(names, list) and names[:1] == ["seen"] and all(name in ALL_NAMES for name in names)
    counts = [size for size in sizes if isinstance(size, int) and 0 <= size <= MOST]
    if names is None or not known or counts != sizes or not isinstance(card.get("without"), list):
        raise SavedAgentError(f"{path!r} is not a selector with input features that this release knows")
    if {name: array.shape for name, array in arrays.items()} != _shapes(len(names), *counts):
        raise SavedAgentError(f"{path!r} contains a network of another shape")
    return arrays, card


def _shapes(features: int, hidden: int, inner: int, rounds: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the layers by name."""
    shapes = {"encode.0": (inner, features), "encode.2": (hidden, inner), "score.0": (inner, 3 * hidden)}
    shapes |= {"score.2": (1, inner)} | {f"message.{i}": (hidden, (1 + len(MOVES)) * hidden) for i in range(rounds)}
    found: dict[str, tuple[int, ...]] = {f"{name}.weight": shape for name, shape in shapes.items()}
    found |= {f"{name}.bias": shape[:1] for name, shape in shapes.items()}
    return found | {f"pool.{i}.weight": (hidden, 2 * hidden) for i in range(rounds)}
