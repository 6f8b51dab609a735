"""Experts of Gymnasium worlds: small networks that ship with the package, Stable-Baselines3 files, and functions."""

import difflib
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from selectenv.checks import check_callable, shown
from selectenv.domains.gym_env import GymWorld
from selectenv.errors import MissingExtraError, OptionError, UnknownNameError, WeightsFileError
from selectenv.io.weights import load_weights
from selectenv.typing import Float32Array, IntArray

FOLDER = Path(__file__).parent / "gym_weights"
SHIPPED = "published"
"""Name of the shipped expert of a world."""
UNKNOWN_EXPERT = "function"
"""Fingerprint of experts that are functions: nothing identifies them, so their data are not cached."""
ACTIVATIONS: dict[str, Callable[[Float32Array], Float32Array]] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, np.float32(0)),
}
SB3_NETWORKS = {
    "relu": ("q_net.q_net.{}", ""),
    "tanh": ("mlp_extractor.policy_net.{}", "action_net"),
}
"""Names of the layers in Stable-Baselines3's policies by their default activation: those of DQN, and of PPO and A2C."""
SB3_ACTIVATIONS = {f"<class 'torch.nn.modules.activation.{name}'>": name.lower() for name in ("Tanh", "ReLU")}
"""How Stable-Baselines3 writes down the activation of a policy, if it is not the default."""


class GymExpert(Protocol):
    """A policy that maps vectors to actions."""

    @property
    def fingerprint(self) -> str:
        """A hash of its parameters."""

    def actions(self, observations: Float32Array) -> IntArray:
        """Return the actions [batch], counted from 0, for observations [batch, d]."""


class NetworkExpert:
    """Takes the action with the largest output of a fully connected network."""

    def __init__(self, layers: list[tuple[Float32Array, Float32Array]], activation: str, card: dict[str, Any]) -> None:
        """Use a network.

        Args:
            layers: weights [outputs, inputs] and biases [outputs] of each layer.
            activation: a key of `ACTIVATIONS`.
            card: how it was trained and what it earns.
        """
        self.layers, self.activation, self.card = layers, activation, card
        digest = hashlib.blake2b(activation.encode(), digest_size=16)
        for array in (part for layer in layers for part in layer):
            digest.update(f"{array.shape}".encode() + np.ascontiguousarray(array, np.float32).tobytes())
        self.fingerprint = digest.hexdigest()

    def outputs(self, observations: Float32Array) -> Float32Array:
        """Return the outputs [batch, actions] for observations [batch, d]."""
        values = observations
        for i, (weights, biases) in enumerate(self.layers):
            # einsum sums in one order, whatever the size of the batch and the number of threads
            values = np.einsum("bi,oi->bo", values, weights) + biases
            if i + 1 < len(self.layers):
                values = ACTIVATIONS[self.activation](values)
        return values

    def actions(self, observations: Float32Array) -> IntArray:
        """Return the actions [batch], counted from 0, for observations [batch, d]."""
        return np.asarray(self.outputs(observations).argmax(axis=1))


class FunctionExpert:
    """Asks a function for the action of each observation."""

    fingerprint = UNKNOWN_EXPERT

    def __init__(self, function: Callable[[Any], Any], world: GymWorld) -> None:
        """Ask ``function``, which maps an observation [d] to an action of the environment."""
        self._function, self._world = check_callable("expert", function, "observation"), world

    def actions(self, observations: Float32Array) -> IntArray:
        """Return the actions [batch], counted from 0, for observations [batch, d].

        Raises:
            OptionError: the function returns something that is not an action.
        """
        allowed = range(self._world.first_action, self._world.first_action + self._world.n_actions)
        found = []
        for observation in observations:
            answer = self._function(observation.copy())
            try:
                found.append(allowed.index(answer))
            except Exception:  # comparing an answer with a number can raise anything
                raise OptionError(
                    f"the expert returned {shown(answer)}; it must return one action, and those of {self._world.name} "
                    f"are {allowed[0]} to {allowed[-1]}"
                ) from None
        return np.array(found, np.int64)


def load_gym_expert(world: GymWorld, expert: Any) -> GymExpert:
    """Return an expert of a world.

    Args:
        world: the world.
        expert: "published", the one that ships with the package; an .npz file of `selectenv train-expert`; a .zip file
            of Stable-Baselines3's PPO, A2C or DQN, of which only the weights and the name of the activation are read;
            or a function from an observation [d] to an action.

    Raises:
        UnknownNameError: no expert of the world ships with the package, or the name is unknown.
        WeightsFileError: the file is missing, damaged, or belongs to another environment.
        OptionError: ``expert`` is of another type.
    """
    if callable(expert):
        return FunctionExpert(expert, world)
    if not isinstance(expert, str | os.PathLike):
        raise OptionError(f"expert must be a name, a file, a function or None, not {shown(expert)}")
    name = os.fspath(expert)
    if name == SHIPPED:
        path = FOLDER / f"{world.name.lower()}.npz"
        if not path.exists():
            raise UnknownNameError(
                f"no expert of {world.name} ships with selectenv: give expert= a Stable-Baselines3 file (.zip), a "
                "function from an observation to an action, or None for random data"
            )
        return _load(path, world)
    if not name.endswith((".npz", ".zip")):
        close = f". Did you mean {SHIPPED!r}?" if difflib.get_close_matches(name.lower(), [SHIPPED]) else ""
        raise UnknownNameError(
            f'unknown expert {shown(expert)} of {world.name}: "{SHIPPED}", a file that ends in .npz or .zip, a '
            f"function, or None for random data{close}"
        )
    return _load(Path(name), world)


def _load(path: Path, world: GymWorld) -> NetworkExpert:
    try:
        modified = path.stat().st_mtime_ns
    except OSError:
        raise WeightsFileError(f"there is no file {os.fspath(path)!r}") from None
    found = _read(path, modified)
    if "env" in found.card and found.card["env"] != world.name:
        raise WeightsFileError(f"{os.fspath(path)!r} is an expert of {found.card['env']}, not of {world.name}")
    inputs, outputs = found.layers[0][0].shape[1], found.layers[-1][0].shape[0]
    if (inputs, outputs) != (world.width, world.n_actions):
        raise WeightsFileError(
            f"{os.fspath(path)!r} is an expert of an environment with {inputs} columns and {outputs} actions; "
            f"{world.name} has {world.width} and {world.n_actions}"
        )
    return found


@lru_cache(maxsize=8)
def _read(path: Path, _modified: int) -> NetworkExpert:
    if path.suffix == ".zip":
        return _read_sb3(path)
    arrays, card = load_weights(path)
    layers = _layers(arrays, "{}", "", path)
    activation = card.get("activation")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise WeightsFileError(f"{os.fspath(path)!r} is not an expert: its card names no known activation")
    return NetworkExpert(layers, activation, card)


def _read_sb3(path: Path) -> NetworkExpert:
    """Return the network of a Stable-Baselines3 file: weights and activation are read, and nothing is unpickled."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(
            f"Stable-Baselines3 files need PyTorch ({error}): pip install 'selectenv[meta]'"
        ) from error
    try:
        with zipfile.ZipFile(path) as file:
            state = torch.load(io.BytesIO(file.read("policy.pth")), map_location="cpu", weights_only=True)
            settings = json.loads(file.read("data")) if "data" in file.namelist() else {}
            written = settings.get("policy_kwargs", {}).get("activation_fn")
        arrays = {name: value.numpy() for name, value in state.items()}
    except Exception as error:  # corrupt files raise unrelated exception types
        raise WeightsFileError(
            f"{os.fspath(path)!r} is not a file of Stable-Baselines3 with weights of a policy ({shown(str(error))})"
        ) from None
    if written is not None and written not in SB3_ACTIVATIONS:
        raise WeightsFileError(
            f"{os.fspath(path)!r} has the activation {shown(written)}, and only Tanh and ReLU can be read; give a "
            "function instead: expert=lambda observation: model.predict(observation, deterministic=True)[0]"
        )
    for usual, (hidden, last) in SB3_NETWORKS.items():
        if f"{hidden.format(0)}.weight" in arrays or f"{last}.weight" in arrays:
            return NetworkExpert(_layers(arrays, hidden, last, path), SB3_ACTIVATIONS.get(written, usual), {})
    raise WeightsFileError(f"{os.fspath(path)!r} has no network of DQN, PPO or A2C over vectors")


def _layers(
    arrays: dict[str, NDArray[Any]], hidden: str, last: str, path: Path
) -> list[tuple[Float32Array, Float32Array]]:
    """Return the weights and biases of the layers, which have even numbers (activations are between them)."""
    names: list[str] = []
    while f"{hidden.format(2 * len(names))}.weight" in arrays:
        names.append(hidden.format(2 * len(names)))
    names += [last] if last else []
    try:
        layers = [(arrays[f"{name}.weight"], arrays[f"{name}.bias"]) for name in names]
    except KeyError as error:
        raise WeightsFileError(f"{os.fspath(path)!r} has no layer {error}") from None
    if not layers:
        raise WeightsFileError(f"{os.fspath(path)!r} is not an expert: it has no layers")
    with np.errstate(over="ignore"):  # numbers beyond the largest float32 are refused below
        layers = [(_as_float32(weights), _as_float32(biases)) for weights, biases in layers]
    inputs = layers[0][0].shape[-1:]
    for weights, biases in layers:
        fits = weights.ndim == 2 and weights.shape[1:] == inputs and biases.shape == weights.shape[:1]
        if not fits or not np.isfinite(weights).all() or not np.isfinite(biases).all():
            raise WeightsFileError(f"{os.fspath(path)!r} is not a fully connected network with finite weights")
        inputs = biases.shape
    return layers


def _as_float32(array: NDArray[Any]) -> Float32Array:
    """Return numbers as float32; an array of anything else as NaN."""
    return array.astype(np.float32) if array.dtype.kind in "fiu" else np.full(array.shape, np.nan, np.float32)
