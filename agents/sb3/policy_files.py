"""Policies from the .zip files of Stable-Baselines3, read without unpickling: JSON and tensors only.

The file of a model contains its spaces, its policy class and the options of its policy twice: as pickled objects, which
can run any code and are never read here, and as text. A policy of a known class is built from the text, and the weights
must fit into it.
"""

import importlib
import inspect
import io
import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from agents.errors import SavedAgentError, UnsupportedModelError
from selectenv.checks import check_path
from selectenv.errors import MissingExtraError

MODULES = (
    "stable_baselines3.common.policies",
    "stable_baselines3.dqn.policies",
    "stable_baselines3.sac.policies",
    "stable_baselines3.td3.policies",
    "sb3_contrib.common.maskable.policies",
    "sb3_contrib.common.recurrent.policies",
    "sb3_contrib.qrdqn.policies",
    "sb3_contrib.ars.policies",
    "sb3_contrib.tqc.policies",
    "sb3_contrib.crossq.policies",
)
"""Modules whose policies are known; no other class is imported."""
CLASSES = {
    "activation_fn": "torch.nn.modules.activation",
    "features_extractor_class": "stable_baselines3.common.torch_layers",
}
"""Options of policies that are classes, and the only modules that they may come from."""
NOT_NEEDED = ("optimizer_class", "optimizer_kwargs")
"""Options that matter in training only."""
BOX = re.compile(r"Box\([^(),]*, [^(),]*, \(((?:\d+,? ?)*)\), (\w+)\)")
ENTRY = re.compile(rf"'([^']*)': ({BOX.pattern})(?:, |$)")
TRUST = "if you trust the file, load the model yourself and pass it: from_sb3(PPO.load(path))"


def read_policy(path: str | os.PathLike[str]) -> Any:
    """Return the policy of a model that was saved with `model.save(path)`.

    Raises:
        SavedAgentError: the file is missing or damaged, or not a model.
        UnsupportedModelError: it cannot be built without unpickling.
        MissingExtraError: Stable-Baselines3, or sb3-contrib where it is needed, is not installed.
    """
    path = check_path("model", path)
    data, weights = _read(path)
    name = os.fspath(path)
    try:
        policy = _policy(data, sum(tensor.numel() for tensor in weights.values()))
        policy.load_state_dict(weights)
    except (UnsupportedModelError, MissingExtraError) as error:
        raise type(error)(f"{name!r}: {error}") from None
    except Exception as error:  # descriptions that do not fit make torch and SB3 raise unrelated exception types
        raise UnsupportedModelError(f"{name!r} cannot be built from its description ({error}); {TRUST}") from None
    return policy


def saved_data(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the JSON description in the file of a model; empty if there is none that can be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            data = json.loads(archive.read("data"))
    except Exception:  # corrupt files raise unrelated exception types
        return {}
    return data if isinstance(data, dict) else {}


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the description and the weights of a model."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(f"this strategy needs torch ({error}): pip install 'selectenv[meta]'") from error
    name = os.fspath(path)
    try:
        with zipfile.ZipFile(path) as archive:
            data = json.loads(archive.read("data"))
            content = io.BytesIO(archive.read("policy.pth"))  # read as a whole, because only then it is checked
        weights = torch.load(content, map_location="cpu", weights_only=True)
        if not isinstance(data, dict) or not isinstance(weights, dict):
            raise ValueError("its parts are of the wrong kind")
        if not all(isinstance(tensor, torch.Tensor) for tensor in weights.values()):
            raise ValueError("its weights are not tensors")
    except FileNotFoundError:
        raise SavedAgentError(f"there is no saved strategy {name!r}") from None
    except Exception as error:  # corrupt files raise unrelated exception types: those of zipfile, json, torch, pickle
        raise SavedAgentError(f"{name!r} is damaged, or not a model of Stable-Baselines3 ({error})") from None
    return data, weights


def _policy(data: dict[str, Any], weights: int) -> Any:
    """Return a new policy as it is described; ``weights`` is the number of its parameters."""
    kind, options = _policy_class(data.get("policy_class")), _options(data.get("policy_kwargs"))
    observation_space, action_space = _space(data, "observation_space"), _space(data, "action_space")
    if max(_numbers([options, *_sizes(observation_space), *_sizes(action_space)]), default=0) > max(weights, 1):
        raise UnsupportedModelError("its description is of a network that is larger than its weights")
    if "lr_schedule" in inspect.signature(kind).parameters:
        options["lr_schedule"] = lambda _: 0.0
    if data.get("use_sde"):
        options["use_sde"] = True
    return kind(observation_space, action_space, **options)


def _policy_class(described: Any) -> Any:
    """Return a policy class of SB3 or sb3-contrib."""
    module = described.get("__module__") if isinstance(described, dict) else None
    named = re.match(r"<function (\w+)\.__init__ ", str(described.get("__init__"))) if module else None
    if module not in MODULES or named is None:
        raise UnsupportedModelError(
            f"its policy class, from {module or 'an unknown module'}, is not one of Stable-Baselines3 or sb3-contrib, "
            f"and others would have to be unpickled; {TRUST}"
        )
    try:
        from stable_baselines3.common.policies import BasePolicy

        found = getattr(importlib.import_module(module), named[1], None)
    except ImportError as error:
        raise MissingExtraError(f"its policy needs {error.name}: pip install 'selectenv[meta]'") from error
    if not isinstance(found, type) or not issubclass(found, BasePolicy):
        raise UnsupportedModelError(f"this release of {module.partition('.')[0]} has no policy {named[1]!r}; {TRUST}")
    return found


def _options(described: Any) -> dict[str, Any]:
    """Return the options of a policy."""
    if not isinstance(described, dict):
        raise UnsupportedModelError(f"the options of its policy are not described; {TRUST}")
    options = {name: value for name, value in described.items() if name[:1] != ":" and name not in NOT_NEEDED}
    for name, value in options.items():
        if isinstance(value, str):
            options[name] = _option_class(name, value)
    return options


def _option_class(name: str, described: str) -> Any:
    """Return a class of torch or SB3 that is an option of a policy."""
    from torch import nn

    module, _, kind = described.removeprefix("<class '").removesuffix("'>").rpartition(".")
    found = getattr(importlib.import_module(module), kind, None) if CLASSES.get(name) == module else None
    if not isinstance(found, type) or not issubclass(found, nn.Module):
        raise UnsupportedModelError(
            f"the option {name} of its policy, {described}, would have to be unpickled; {TRUST}"
        )
    return found


def _space(data: dict[str, Any], name: str) -> gym.Space[Any]:
    """Return a space of the kinds that reward selection has; bounds do not matter to a policy."""
    described: Any = data.get(name)
    try:
        kind = str(described[":type:"]).removesuffix("'>").rpartition(".")[2]
        if kind == "Discrete":
            return gym.spaces.Discrete(int(described["n"]))
        if kind == "MultiDiscrete":
            return gym.spaces.MultiDiscrete([int(n) for n in re.findall(r"\d+", described["nvec"])])
        if kind == "Box":
            low, high = (-1, 1) if name == "action_space" else (-np.inf, np.inf)
            return gym.spaces.Box(low, high, tuple(described["_shape"]), described["dtype"])
        if kind == "Dict":
            text = described["spaces"]
            entries = list(ENTRY.finditer(text.strip("{}")))
            if "".join(entry[0] for entry in entries) == text.strip("{}") and entries:
                return gym.spaces.Dict({entry[1]: _box(entry[3], entry[4]) for entry in entries})
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    raise UnsupportedModelError(f"its {name.replace('_', ' ')} cannot be read from its description; {TRUST}")


def _box(shape: str, dtype: str) -> gym.spaces.Box:
    return gym.spaces.Box(-np.inf, np.inf, tuple(int(n) for n in re.findall(r"\d+", shape)), np.dtype(dtype).type)


def _sizes(space: gym.Space[Any]) -> list[int]:
    """Return the sizes of the parts of a space."""
    if isinstance(space, gym.spaces.Dict):
        return [size for part in space.spaces.values() for size in _sizes(part)]
    if isinstance(space, gym.spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, gym.spaces.MultiDiscrete):
        return [int(space.nvec.sum())]
    return [int(np.prod(space.shape or ()))]


def _numbers(value: Any) -> list[int]:
    """Return all integers in nested lists and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for inner in value for number in _numbers(inner)]
    return [value] if isinstance(value, int) else []
