"""The state of a MinAtar game in progress as plain data, so that a training run can be resumed exactly."""

from typing import Any

import numpy as np


def save_game(game: Any) -> dict[str, Any]:
    """Return the state of a MinAtar environment, ready for JSON."""
    kind, keys, place, has_normal, normal = game.random.get_state()
    return {
        "last_action": int(game.last_action),
        "random": [kind, keys.tolist(), int(place), int(has_normal), float(normal)],
        "env": {name: _encoded(value) for name, value in vars(game.env).items() if name != "random"},
    }


def restore_game(game: Any, state: dict[str, Any]) -> None:
    """Set a MinAtar environment to a state of `save_game`."""
    kind, keys, *rest = state["random"]
    game.random.set_state((kind, np.array(keys, np.uint32), *rest))
    game.env.random = game.random
    game.last_action = state["last_action"]
    for name, value in state["env"].items():
        setattr(game.env, name, _decoded(value))


def _encoded(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "dtype": value.dtype.str}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [_encoded(entry) for entry in value]
    if isinstance(value, dict):
        return {"dict": {name: _encoded(entry) for name, entry in value.items()}}
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(entry) for entry in value]
    if isinstance(value, dict):
        if "array" in value:
            return np.array(value["array"], np.dtype(value["dtype"]))
        return {name: _decoded(entry) for name, entry in value["dict"].items()}
    return value
