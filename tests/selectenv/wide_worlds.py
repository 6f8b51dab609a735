"""Random worlds that are too large for elimination, and data of them in the format of both solvers."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from selectenv.datasets import collect, dataset_spec
from selectenv.domains.tabular import from_outcomes
from selectenv.kernels.tabular import model, single

SMALLEST, LARGEST = 129, 160


def wide_world(seed: int, reach: int = 1000, horizon: int = 30):
    """More states than elimination allows; actions lead up to ``reach`` states away, rewards are whole numbers."""
    rng = np.random.default_rng(seed)
    n, actions, ways = int(rng.integers(SMALLEST, LARGEST)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    shape = n, actions, ways
    far = rng.integers(-min(reach, n), min(reach, n) + 1, shape)
    state, action, _ = (axis.ravel() for axis in np.indices(shape))
    terminal = rng.random(n) < rng.choice([0.0, 0.02, 0.2])
    rewards = rng.integers(-2, 3, (n, actions)) if rng.random() < 0.5 else rng.normal(size=(n, actions))
    return from_outcomes(
        f"wide-{seed}",
        state=state,
        action=action,
        probability=rng.dirichlet(np.ones(ways), shape[:2]).ravel(),
        next_state=((np.arange(n)[:, None, None] + far) % n).ravel(),
        reward=np.where(rng.random((n, actions)) < 0.5, rewards, 0)[state, action],
        terminated=terminal[state],
        start=np.full(n, 1 / n),
        horizon=horizon,
    )


def data_of(world, seed, size=2000):
    return collect(world, dataset_spec(world, expert_share=0.3, mixture="all", expert="optimal", size=size, seed=seed))


@contextmanager
def elimination_everywhere():
    """Solve models of any size by dense elimination; models that were built before are not changed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "ELIMINATION_LIMIT", 10 * LARGEST)
        patch.setattr(single, "ELIMINATION_LIMIT", 10 * LARGEST)
        yield


def copy_of(data):
    """The same data, none of whose models is built yet."""
    return replace(data, _shared={})
