"""Collection of datasets from a Gymnasium world with a mixture of an expert and random actions."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.vector_transitions import VectorEpisodes
from selectenv.domains.gym_env import GymWorld, Lanes
from selectenv.domains.gym_experts import GymExpert, load_gym_expert
from selectenv.errors import OptionError
from selectenv.io.resources import require_memory
from selectenv.options import DataOptions
from selectenv.streams import generator
from selectenv.typing import Float32Array, FloatArray, IntArray

LANES = 50
"""Episodes that are played side by side."""
BYTES = 256
"""Bytes of memory per transition and 8 columns, while data are collected and numbered."""


def collection(world: GymWorld, options: DataOptions) -> tuple[dict[str, Any], Callable[[], OfflineDataset]]:
    """Return the spec of the dataset described by resolved options, and the function that collects it.

    Raises:
        OptionError: the mixture needs an expert, and there is none.
    """
    assert options.dataset_size is not None
    assert options.expert_share is not None
    assert options.mixture is not None
    low, high = _share_range(options.expert_share)
    expert = None
    if options.expert is None:
        low = high = 0.0
        if options.mixture != "all":
            raise OptionError(f"expert=None is random data, and the mixture {options.mixture!r} needs an expert")
    elif high > 0 or options.mixture != "all":
        expert = load_gym_expert(world, options.expert)
    spec = {
        "world": world.name,
        "world_fingerprint": world.fingerprint,
        "expert_share": low if low == high else [low, high],
        "mixture": options.mixture,
        "expert": "none" if expert is None else expert.fingerprint,
        "size": int(options.dataset_size),
        "seed": int(options.dataset_seed),
        "lanes": LANES,
    }
    return spec, partial(collect_vectors, world, spec, expert)


def collect_vectors(world: GymWorld, spec: dict[str, Any], expert: GymExpert | None) -> OfflineDataset:
    """Collect the dataset of a spec with its expert: the same spec gives the same data.

    Raises:
        ResourceError: there is too little memory; nothing was started.
    """
    size = spec["size"]
    require_memory(size * BYTES * max(1, world.width // 8), f"collecting {size:,} transitions of {world.name}")
    identity = [value for key, value in spec.items() if key not in ("world", "seed")]
    rng = generator(spec["seed"], "mixture", *identity)
    seeds = generator(spec["seed"], "dataset", *identity).integers(2**31, size=LANES).tolist()
    count = min(LANES, size)
    steps = -(-size // count)
    lanes, record = Lanes(world, count), VectorEpisodes(count, steps, world.width)
    lanes.reset(seeds[:count])
    every = np.arange(count)
    low, high = _share_range(spec["expert_share"])
    drawn = generator(spec["seed"], "shares", *identity)
    shares: FloatArray = drawn.uniform(low, high, count)
    for step in range(steps):
        actions = _mixed_actions(lanes.observations, world.n_actions, expert, shares, spec["mixture"], rng)
        record.before(step, lanes.observations, actions)
        result = lanes.step(actions, every)
        record.after(step, result.reward, result.terminated, result.truncated, result.entered)
        over = every[result.terminated | result.truncated]
        lanes.reset([None] * len(over), over)
        shares[over] = drawn.uniform(low, high, len(over))
    lanes.close()
    return record.dataset(size, world.n_actions, world.columns, spec)


def _share_range(share: Any) -> tuple[float, float]:
    """Return the smallest and the largest expert share that an episode can have."""
    low, high = share if isinstance(share, tuple | list) else (share, share)
    return float(low), float(high)


def _mixed_actions(
    observations: Float32Array,
    n_actions: int,
    expert: GymExpert | None,
    shares: FloatArray,
    mixture: str,
    rng: np.random.Generator,
) -> IntArray:
    """Draw the next action of each lane: the expert's, or a random action ("all" or "non-expert")."""
    count = len(observations)
    follow, other = rng.random(count) < shares, rng.integers(n_actions, size=count)
    skip = rng.integers(max(1, n_actions - 1), size=count)
    if expert is None:
        return other
    advised = expert.actions(observations)
    if mixture == "non-expert":
        other = (skip + (skip >= advised)) % n_actions
    return np.where(follow, advised, other)
