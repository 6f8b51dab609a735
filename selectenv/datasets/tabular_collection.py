"""Collection of datasets from a tabular world with a mixture of its expert and random actions."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from selectenv.checks import check_instance, check_int, check_name, check_real
from selectenv.datasets.dataset import OfflineDataset
from selectenv.domains.tabular.mixture import EXPERTS, expert_actions, mixture_policy
from selectenv.domains.tabular.world import TabularWorld
from selectenv.errors import DatasetError, OptionError
from selectenv.io.resources import require_memory
from selectenv.kernels.tabular.sample import collect as collect_transitions
from selectenv.options import LARGEST_SIZE, MIXTURES, DataOptions
from selectenv.streams import seed_word

PUBLISHED_SIZE = 100_000
BYTES = 64
"""Memory per transition, while data are collected and counted."""
Collect = Callable[[Any, DataOptions], tuple[dict[str, Any], Callable[[], OfflineDataset]]]
"""World and options -> the spec of a dataset, and the function that collects it."""


def size(options: DataOptions) -> int:
    """Return the number of transitions to collect.

    Raises:
        OptionError: a scale is given, which tabular worlds do not have.
    """
    if options.scale is not None:
        raise OptionError("scale sets the dataset_size of MinAtar data; for tabular worlds pass dataset_size instead")
    return PUBLISHED_SIZE if options.dataset_size is None else options.dataset_size


def collection(world: TabularWorld, options: DataOptions) -> tuple[dict[str, Any], Callable[[], OfflineDataset]]:
    """Return the spec of the dataset described by resolved options, and the function that collects it."""
    assert options.dataset_size is not None
    assert options.mixture is not None
    spec = dataset_spec(
        world,
        expert_share=options.one_share,
        mixture=options.mixture,
        expert=options.expert,
        size=options.dataset_size,
        seed=options.dataset_seed,
    )
    return spec, partial(collect, world, spec)


def dataset_spec(
    world: TabularWorld, *, expert_share: float, mixture: str, expert: str, size: int, seed: int
) -> dict[str, Any]:
    """Return everything that determines a dataset, ready for JSON."""
    check_instance("world", world, TabularWorld)
    check_int("dataset_size", size, 1, LARGEST_SIZE, DatasetError)
    check_int("dataset_seed", seed, 0)
    check_real("expert_share", expert_share, "[0, 1]")
    check_name("mixture", mixture, MIXTURES)
    check_name("expert", expert, EXPERTS)
    return {
        "world": world.name,
        "world_fingerprint": world.fingerprint,
        "expert_share": float(expert_share),
        "mixture": mixture,
        "expert": expert,
        "size": int(size),
        "seed": int(seed),
    }


def collect(world: TabularWorld, spec: dict[str, Any]) -> OfflineDataset:
    """Collect the dataset of a `dataset_spec`: the same spec gives the same data.

    Raises:
        ResourceError: there is too little memory; nothing was started.
    """
    require_memory(BYTES * spec["size"], f"collecting {spec['size']:,} transitions of {world.name}")
    policy = mixture_policy(expert_actions(world, spec["expert"]), spec["expert_share"], spec["mixture"])
    cumulative = np.cumsum(policy, axis=1)
    cumulative[cumulative >= cumulative[:, -1:]] = 1.0  # also where only actions of probability 0 follow
    identity = (spec["world_fingerprint"], spec["expert_share"], spec["mixture"], spec["expert"], spec["size"])
    seed = np.array([seed_word(spec["seed"], "dataset", *identity)])
    state, action, next_state, reward, terminated, truncated = collect_transitions(
        world.walk, cumulative, spec["size"], seed
    )
    return OfflineDataset(
        ids=world.ids,
        n_actions=world.n_actions,
        state=state,
        action=action,
        next_state=next_state,
        terminated=terminated,
        truncated=truncated,
        episode_start=np.concatenate([[True], (terminated | truncated)[:-1]]),
        hidden_reward=reward,
        spec=spec,
    )
