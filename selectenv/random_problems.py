"""Problem source that draws a new random world and new data at every call, padded to a fixed size."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from selectenv.checks import check_int, check_name
from selectenv.datasets import collect, dataset_spec
from selectenv.domains.tabular.random_worlds import KINDS, LARGEST, SMALLEST, pad, random_world
from selectenv.domains.tabular.world import TabularWorld
from selectenv.errors import OptionError
from selectenv.evaluation import Evaluator, ExactReturns
from selectenv.learners import make_learner
from selectenv.options import MIXTURES
from selectenv.problem import SelectionProblem

SIZES = (3_000, 30_000)
"""Minimum and maximum number of transitions of a dataset."""
SHARES = (0.3, 0.8)
"""Minimum and maximum share of expert actions in the data."""
TRIES = 100
MOST_STATES = 10_000
WORTHWHILE = 1e-3
"""Minimum gain of labelling everything over labelling nothing, as a share of the range of returns of the world."""


@dataclass(frozen=True)
class RandomProblems:
    """Draws problems in which labels matter; the same generator state gives the same problem.

    The problem has ``padding`` states; those that pad the world never occur in the data and are masked. A budget given
    as a share refers to the states that can be labelled.
    """

    padding: int = LARGEST
    """Number of states of every problem."""
    smallest: int = SMALLEST
    """Minimum number of states of a world."""
    largest: int | None = None
    """Maximum number of states of a world; defaults to ``padding``."""
    kinds: tuple[str, ...] = tuple(KINDS)
    learner: str = "uds"

    def __post_init__(self) -> None:
        """Reject invalid sizes, and unknown kinds of worlds and learners."""
        check_int("padding", self.padding, SMALLEST, MOST_STATES)
        check_int("smallest", self.smallest, SMALLEST, self.padding)
        if self.largest is not None and check_int("largest", self.largest, self.smallest) > self.padding:
            raise OptionError(f"largest must not exceed padding ({self.padding}); got {self.largest}")
        if not isinstance(self.kinds, tuple | list) or not self.kinds:
            raise OptionError(f"kinds must contain at least one of {', '.join(KINDS)}")
        for kind in self.kinds:
            check_name("kind of world", kind, KINDS)
        check_name("learner", self.learner, ("uds", "adapted"))

    def __call__(self, rng: np.random.Generator) -> SelectionProblem:
        """Return a problem drawn with ``rng``.

        Raises:
            OptionError: labels do not matter in any of the worlds drawn.
        """
        for _ in range(TRIES):
            world = self._world(rng)
            problem = self._problem(world, rng)
            nothing, everything = (
                problem.score(mask) for mask in (np.zeros(self.padding, bool), problem.dataset.labelable)
            )
            if everything - nothing > WORTHWHILE * (world.best_return() - world.worst_return()):
                return problem.with_calls()
        raise OptionError(f"labels do not matter in any of {TRIES} random worlds: allow larger worlds than {self}")

    def _world(self, rng: np.random.Generator) -> TabularWorld:
        kind = str(rng.choice(self.kinds))
        return pad(random_world(rng, kind, self.smallest, self._largest), self.padding)

    def _problem(self, world: TabularWorld, rng: np.random.Generator) -> SelectionProblem:
        spec = dataset_spec(
            world,
            expert_share=float(rng.uniform(*SHARES)),
            mixture=str(rng.choice(MIXTURES)),
            expert="optimal",
            size=int(np.exp(rng.uniform(*np.log(SIZES)))),
            seed=int(rng.integers(2**63)),
        )
        data = collect(world, spec)
        return SelectionProblem(
            data,
            make_learner(self.learner),
            Evaluator(ExactReturns(world)),
            world.layout,
            budget_states=int(data.labelable.sum()),
        )

    @cached_property
    def _largest(self) -> int:
        return self.padding if self.largest is None else self.largest
