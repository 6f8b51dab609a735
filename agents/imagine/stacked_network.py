"""The network of `auto`: a correction of the scores of `learned`, computed without torch.

score(s) = scale log p(s) + f(x(s), mean over s' of e(x(s')), max over s' of e(x(s'))),

where p is the softmax of the scores of `learned` over the states that can be labelled, x(s) are features, most of them
of the imagination, e is the encoder and f a small network.
"""

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.errors import SavedAgentError
from agents.imagine.stacked_features import STACKED_NAMES
from selectenv.errors import WeightsFileError
from selectenv.io.weights import load_weights
from selectenv.typing import Float32Array, IntArray

INPUTS = (
    "seen",
    "open",
    "labelled",
    "adapted",
    "budget left",
    "labels left",
    "states",
    "reward seen",
    "decided",
    "sought",
    "sought termination",
    "planned loss rank",
    "estimated gain rank",
    "visitation rank",
    "depth",
    "termination share",
    *STACKED_NAMES[STACKED_NAMES.index("in plan") :],
)
"""Names of the features that the correction sees by default."""
SHARE = STACKED_NAMES.index("learned share")
Parts = dict[str, NDArray[Any]]
"""The layers of a network."""


def stacked_scores(parts: Parts, columns: IntArray, features: Float32Array) -> Float32Array:
    """Return the scores [n].

    Args:
        parts: the layers.
        columns: numbers of the features that the correction sees.
        features: [n, features] of all states.
    """
    seen, x = features[:, :1], features[:, columns]
    code = np.maximum(x @ parts["encode.weight"].T + parts["encode.bias"], 0) * seen
    pool = np.concatenate([code.sum(axis=0) / max(float(seen.sum()), 1.0), code.max(axis=0)])
    weight, hidden = parts["inner.weight"], code.shape[1]
    inner = np.maximum(code @ weight[:, :hidden].T + (weight[:, hidden:] @ pool + parts["inner.bias"]), 0)
    correction = (inner @ parts["outer.weight"].T + parts["outer.bias"])[:, 0]
    return np.asarray(parts["scale"] * log_shares(features) + correction, np.float32)


def log_shares(features: Float32Array) -> Float32Array:
    """Return the logarithm [n] of the share of every state in the softmax of the scores of `learned`."""
    return np.asarray(10 * (features[:, SHARE] - 1), np.float32)


def columns_of(names: list[str]) -> IntArray:
    """Return the numbers of features."""
    return np.array([STACKED_NAMES.index(name) for name in names])


def read_stacked(path: str | os.PathLike[str]) -> tuple[Parts, dict[str, Any]]:
    """Return the layers and the card of a network.

    Raises:
        SavedAgentError: the file is missing or damaged, or contains another network.
    """
    try:
        return _read(os.fspath(path), Path(path).stat().st_mtime_ns)
    except FileNotFoundError:
        raise SavedAgentError(f"there is no file {os.fspath(path)!r} with weights of 'auto'") from None


@lru_cache(maxsize=8)
def _read(path: str, _modified: int) -> tuple[Parts, dict[str, Any]]:
    try:
        arrays, card = load_weights(path)
    except WeightsFileError as error:
        raise SavedAgentError(str(error)) from None
    names, hidden = card.get("inputs"), card.get("hidden")
    if not isinstance(hidden, int) or not isinstance(names, list) or not set(names) <= set(STACKED_NAMES):
        raise SavedAgentError(f"{path!r} does not contain weights of 'auto' that this release knows")
    wanted = {
        "encode.weight": (hidden, len(names)),
        "encode.bias": (hidden,),
        "inner.weight": (hidden, 3 * hidden),
        "inner.bias": (hidden,),
        "outer.weight": (1, hidden),
        "outer.bias": (1,),
        "scale": (),
    }
    if {name: array.shape for name, array in arrays.items()} != wanted:
        raise SavedAgentError(f"{path!r} contains a network of another shape")
    return arrays, card
