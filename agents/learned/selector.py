"""learned: a selector that was trained on random worlds and labels states in any other world without an evaluator."""

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.base import Taxonomy
from agents.errors import SavedAgentError
from agents.learned.feature_context import SelectorAgent
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
SHIPPED = "behaviour"
"""The default, which sees features of the data's behaviour."""
FIRST = "seed-2"
"""The default of the first round: the best of its five in random worlds held out from training."""
MOST_STATES = 2_000
"""In larger worlds the default plays with the weights of the first round, whose features need no fit of their own."""
LAYERS = ("encode.0", "encode.2", "score.0", "score.2")


@register("learned-v1", weights=FIRST)
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
    version = 2
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
        return score_states(self._parts, features)


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


def score_states(parts: dict[str, NDArray[Any]], features: Float32Array) -> Float32Array:
    """Return the scores [n] for features [n, features], equal to those of the network in `agents.learned.scorer`."""

    def layer(name: str, inputs: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(inputs @ parts[f"{name}.weight"].T + parts[f"{name}.bias"])

    seen = features[:, :1]
    code = np.maximum(layer("encode.2", np.maximum(layer("encode.0", features), 0)), 0) * seen
    pool = np.concatenate([code.sum(axis=0) / max(float(seen.sum()), 1.0), code.max(axis=0)])
    weight, hidden = parts["score.0.weight"], code.shape[1]
    beside = weight[:, hidden:] @ pool + parts["score.0.bias"]  # the same for all states
    inner = np.maximum(code @ weight[:, :hidden].T + beside, 0)
    scores: Float32Array = layer("score.2", inner)[:, 0]
    return scores


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
    known = isinstance(names, list) and names[:1] == ["seen"] and all(name in ALL_NAMES for name in names)
    if names is None or not known or not isinstance(hidden, int) or not isinstance(card.get("without"), list):
        raise SavedAgentError(f"{path!r} is not a selector with input features that this release knows")
    sizes = ((hidden, len(names)), (hidden, hidden), (hidden, 3 * hidden), (1, hidden))
    wanted: dict[str, tuple[int, ...]] = {}
    for name, shape in zip(LAYERS, sizes, strict=True):
        wanted |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    if {name: array.shape for name, array in arrays.items()} != wanted:
        raise SavedAgentError(f"{path!r} contains a network of another shape")
    return arrays, card
