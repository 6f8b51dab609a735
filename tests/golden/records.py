"""What the golden files hold: observations, masks and returns of every registered id, for fixed options and seeds."""

import hashlib
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import selectenv
from selectenv.errors import UnseenStatesWarning
from selectenv.worlds import RANDOM

FOLDER = Path(__file__).parent
PREFIX = "RewardSelection-"
RULES, SOLVERS = ("uds", "adapted"), ("exact", "sampled")
SEED, LABELS = 7, 4
OWN_OPTIONS: dict[str, dict[str, Any]] = {"Sparse": {"n_states": 60, "dataset_size": 5_000}}
"""Options of worlds whose defaults are large."""
NETWORK_DATA: dict[str, Any] = {"dataset_size": 5_000, "cache": False}
NETWORK_GROUPS, UPDATES, ROLLOUTS = 20, 10, 3
EXACT, NETWORK = 1e-12, 1e-4
"""Tolerances of tables that are solved exactly and of everything that depends on networks of float32."""


def registered() -> list[str]:
    """Return the ids of this package; other installed packages may have registered more."""
    own = {**selectenv.TABULAR, **selectenv.GAMES, **selectenv.CONTROL, "Sparse": None, RANDOM: None}
    return [selectenv.env_id(world) for world in own]


def world_of(env_id: str) -> str:
    """Return the world of an id, for example "Tree" of "RewardSelection-Tree-v0"."""
    return env_id.removeprefix(PREFIX).rpartition("-v")[0]


def file_of(env_id: str) -> Path:
    return FOLDER / f"{env_id.removeprefix(PREFIX)}.json"


def record(env_id: str) -> dict[str, Any]:
    """Return what the golden file of an id holds."""
    world = world_of(env_id)
    if world in selectenv.GAMES or world in selectenv.CONTROL:
        return network_record(world)
    solvers = ({},) if world == RANDOM else tuple({"solver": solver} for solver in SOLVERS)
    settings = [{"learner": rule, **solver} for rule in RULES for solver in solvers]
    own = OWN_OPTIONS.get(world, {})
    return {" ".join(options.values()): episode(env_id, {**options, **own}) for options in settings}


def differences(found: Any, kept: Any, largest: float, where: str = "") -> Iterator[str]:
    """Yield one line per entry of two records that differs by more than ``largest``, absolutely and relatively."""
    if isinstance(found, dict) and isinstance(kept, dict):
        for name in {**kept, **found}:
            yield from differences(found.get(name), kept.get(name), largest, f"{where}/{name}")
    elif isinstance(found, list) and isinstance(kept, list) and len(found) == len(kept):
        for number, (mine, theirs) in enumerate(zip(found, kept, strict=True)):
            yield from differences(mine, theirs, largest, f"{where}/{number}")
    elif isinstance(found, float) and isinstance(kept, float):
        if not math.isclose(found, kept, rel_tol=largest, abs_tol=largest):
            yield f"{where}: {found!r} instead of {kept!r}"
    elif found != kept:
        yield f"{where}: {found!r} instead of {kept!r}"


def tolerance(env_id: str) -> float:
    """Return the largest difference that a number of the golden file may have."""
    world = world_of(env_id)
    return NETWORK if world in selectenv.GAMES or world in selectenv.CONTROL else EXACT


def episode(env_id: str, options: dict[str, Any]) -> dict[str, Any]:
    """Play a fixed episode with marginal rewards; its labels are spread evenly over the states of the data."""
    data = {} if world_of(env_id) == RANDOM else {"cache": False}
    env = gym.make(env_id, budget=LABELS, reward_mode="marginal", **data, **options)
    obs, info = env.reset(seed=SEED)
    labels = spread(np.flatnonzero(info["action_mask"]))
    steps = [{"mask": packed(info["action_mask"]), "observation": projections(obs)}]
    for label in labels.tolist():
        obs, reward, _, _, info = env.step(label)
        steps.append({"mask": packed(info["action_mask"]), "observation": projections(obs), "reward": reward})
    return {"labels": labels.tolist(), "performance": info["performance"], "steps": steps}


def spread(numbers: np.ndarray) -> np.ndarray:
    """Return `LABELS` of the numbers, from the first to the last."""
    return numbers[np.linspace(0, len(numbers) - 1, LABELS).astype(int)]


def packed(mask: np.ndarray) -> str:
    """Return a mask [n] in hexadecimal digits, eight states per pair of digits."""
    return np.packbits(mask.astype(bool)).tobytes().hex()


def projections(obs: dict[str, np.ndarray]) -> dict[str, list[float]]:
    """Return two numbers per feature: its sum over the states, and its sum weighted by 1, 2, 3, ...

    A change of any entry changes both; `math.fsum` rounds once, whatever the machine.
    """
    found = {}
    for name, values in obs.items():
        entries = values.astype(np.float64).tolist()
        found[name] = [math.fsum(entries), math.fsum(number * entry for number, entry in enumerate(entries, 1))]
    return found


def network_record(world: str) -> dict[str, Any]:
    """Return the digest of a dataset, action values after ten updates, and returns of tables."""
    groups = {"groups": NETWORK_GROUPS} if world in selectenv.CONTROL else {}
    data = selectenv.make_problem(world, **NETWORK_DATA, **groups).dataset
    options = {"dataset": data, "rollouts": ROLLOUTS}
    half = data.labelable & (np.arange(data.n_states) % 2 == 0)
    found: dict[str, Any] = {"dataset": digest(data.base), "states": data.n_states}
    for learner in ("iql", "iql-adapted"):
        problem = selectenv.make_problem(world, learner=learner, updates=UPDATES, **options)
        q = problem.learn(half).q
        found[learner] = {"mean": q.mean(axis=0).tolist(), "states": q[spread(np.arange(len(q)))].tolist()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenStatesWarning)  # the data are few
        for rule in RULES:
            problem = selectenv.make_problem(world, learner=rule, **options)
            found[rule] = {"half": problem.score(half), "all": problem.score(data.labelable)}
    return found


def digest(dataset: selectenv.OfflineDataset) -> str:
    """Return a hash of the transitions; vectors are rounded to 3 decimals, so that no machine's last bit matters."""
    found = hashlib.blake2b(str(dataset.n_actions).encode(), digest_size=16)
    for name, array in dataset.arrays().items():
        exact = np.round(array.astype(np.float64), 3) + 0.0 if array.dtype.kind == "f" else array
        found.update(name.encode())
        found.update(np.ascontiguousarray(exact).tobytes())
    return found.hexdigest()
