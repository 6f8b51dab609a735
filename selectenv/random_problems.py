"""A problem source: a new random world with new data at every call, padded to one size."""

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
"""Transitions of a dataset, at least and at most."""
SHARES = (0.3, 0.8)
"""Of expert actions in the data."""
TRIES = 100
MOST_STATES = 10_000
WORTHWHILE = 1e-3
"""What labelling everything must earn more than labelling nothing, as a share of what the world allows."""


@dataclass(frozen=True)
class RandomProblems:
    """Draws worlds in which labels matter; the same generator gives the same problem.

    The problem has ``padding`` states; those beyond the world's own are never seen in the data and masked. A share of
    the budget is a share of the states that can be labelled.
    """

    padding: int = LARGEST
    """States of every problem."""
    smallest: int = SMALLEST
    """States of a world at least."""
    largest: int | None = None
    """States of a world at most; as many as fit if left out."""
    kinds: tuple[str, ...] = tuple(KINDS)
    learner: str = "uds"

    def __post_init__(self) -> None:
        """Refuse sizes and kinds that do not exist."""
        check_int("padding", self.padding, SMALLEST, MOST_STATES)
        check_int("smallest", self.smallest, SMALLEST, self.padding)
        if self.largest is not None and check_int("largest", self.largest, self.smallest) > self.padding:
            raise OptionError(f"worlds of {self.largest} states do not fit: the padding has {self.padding}")
        if not isinstance(self.kinds, tuple | list) or not self.kinds:
            raise OptionError(f"at least one kind of world is needed out of {', '.join(KINDS)}")
        for kind in self.kinds:
            check_name("kind of world", kind, KINDS)
        check_name("learner", self.learner, ("uds", "adapted"))

    def __call__(self, rng: np.random.Generator) -> SelectionProblem:
        """Return a problem drawn from ``rng``."""
        for _ in range(TRIES):
            world = self._world(rng)
            problem = self._problem(world, rng)
            nothing, everything = (
                problem.score(mask) for mask in (np.zeros(self.padding, bool), problem.dataset.labelable)
            )
            if everything - nothing > WORTHWHILE * (world.best_return() - world.worst_return()):
                return problem.with_calls()
        raise OptionError(f"{TRIES} random worlds in a row have nothing to learn: allow larger worlds than {self}")

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
