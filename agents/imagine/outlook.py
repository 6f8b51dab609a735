"""What is imagined after the labels so far, and what it says about every state: input features of `auto`."""

from dataclasses import dataclass

import numpy as np

from agents.imagine.particles import Particles
from agents.imagine.set_planner import SetPlanner
from agents.learned.behaviour_features import ranks
from selectenv.typing import BoolArray, FloatArray, IntArray

BY_STATE = (
    "in plan",
    "imagined rank",
    "plan worth",
    "plan worth rank",
    "plan worth spread",
    "plan worth chance",
    "imagined gain",
    "imagined gain rank",
    "imagined gain spread",
    "doubt",
    "chance of best",
    "importance",
    "importance rank",
    "imagined reward",
    "imagined reward range",
)
"""Names of the features of a state."""
OVERALL = ("plan utility", "plan utility spread", "rewards differ", "certainty")
"""Names of the features of the whole episode, besides one per family of rewards."""
PROPOSED = (
    "proposed",
    "proposed worth",
    "proposal utility",
    "proposal deficit",
    "proposal deficit spread",
    "plan wins",
)
"""Names of the features of a set that another strategy would label: two of a state, the others of the whole set."""
NOTABLE = 0.02
"""Worth beyond which a particle counts as one to which a state matters."""
FEW_VALUED = 4
"""States in large worlds whose gain and worth are computed: of those outside of the plan, the ones that seem to matter
most, and the first of a proposal."""


@dataclass(frozen=True, eq=False)
class Outlook:
    """The imagination after the labels so far, and the plan for the others."""

    particles: Particles
    planner: SetPlanner
    plan: IntArray
    """States that are planned to be labelled, none if no labels are left."""
    scores: FloatArray
    """[n] scores of `imagine`."""
    free: BoolArray
    """[n] states that are not labelled and occur in the data."""
    rewards: FloatArray
    """[particles, pairs] the rewards that the plan averages over."""
    weights: FloatArray
    """[particles] their probabilities."""
    doubt: FloatArray
    """[n] how much particles disagree about the rewards of each state."""
    chance_of_best: FloatArray
    """[n] probability that rewards are sparse and a state pays the largest one."""
    importance: FloatArray
    """[n] how much each state seems to matter alone."""

    def columns(self) -> dict[str, FloatArray | float]:
        """Return the features: name -> values [n], or one value for the whole episode."""
        free, weights, n = self.free, self.weights, len(self.free)
        gain, worth, utility = self._values()
        in_plan = np.zeros(n)
        in_plan[self.plan] = 1.0

        def spread(values: FloatArray) -> FloatArray:
            mean = weights @ values
            return np.asarray(np.sqrt(weights @ (values - mean) ** 2))

        world = self.particles.world
        relative = self.rewards / np.maximum(np.abs(self.rewards).max(axis=1, keepdims=True), 1e-12)
        seen, first = np.flatnonzero(world.data.labelable), world.model.first_choice[:-1][world.data.labelable]
        highest, lowest = (np.zeros(n) for _ in range(2))
        highest[seen] = weights @ np.maximum.reduceat(relative, first, axis=1)
        lowest[seen] = weights @ np.minimum.reduceat(relative, first, axis=1)
        mean_gain, mean_worth = weights @ gain, weights @ worth
        shares = np.bincount(self.particles.family, self.particles.weights, len(self.particles.families))
        return {
            "in plan": in_plan,
            "imagined rank": ranks(self.scores, free),
            "plan worth": _root(mean_worth),
            "plan worth rank": ranks(mean_worth, free),
            "plan worth spread": _root(spread(worth)),
            "plan worth chance": weights @ (worth > NOTABLE),
            "imagined gain": _root(mean_gain),
            "imagined gain rank": ranks(mean_gain, free),
            "imagined gain spread": _root(spread(gain)),
            "doubt": self.doubt,
            "chance of best": self.chance_of_best,
            "importance": self.importance / 2,
            "importance rank": ranks(self.importance, free),
            "imagined reward": highest,
            "imagined reward range": highest - lowest,
            "plan utility": float(_root(np.array(weights @ utility))),
            "plan utility spread": float(_root(spread(utility[:, None])[0])),
            "rewards differ": float(self.particles.differs),
            "certainty": float((weights**2).sum()),
            **{
                f"family {family.name}": float(share)
                for family, share in zip(self.particles.families, shares, strict=True)
            },
        }

    def proposal_columns(self, proposal: IntArray) -> dict[str, FloatArray | float]:
        """Return the features of a set that another strategy would label: name -> values [n], or one value for all.

        Args:
            proposal: as many states as the plan has, the best ones first.
        """
        proposed, worth, utility, deficit = np.zeros(len(self.free)), np.zeros(len(self.free)), 0.0, np.zeros(1)
        weights = self.weights
        if len(proposal):
            proposed[proposal] = 1.0
            tried = proposal[:FEW_VALUED] if self.particles.world.is_large else proposal
            plan, whole, *without = self.planner.by_particle(
                [self.plan, proposal, *(np.delete(proposal, i) for i in range(len(tried)))]
            )
            utility, deficit = float(weights @ whole), plan - whole
            worth[tried] = (whole - np.array(without)) @ weights
        else:
            weights = np.ones(1)
        mean = weights @ deficit
        return {
            "proposed": proposed,
            "proposed worth": _root(worth),
            "proposal utility": float(_root(np.array(utility))),
            "proposal deficit": float(_root(mean)),
            "proposal deficit spread": float(_root(np.sqrt(weights @ (deficit - mean) ** 2))),
            "plan wins": float(weights @ (deficit > NOTABLE)) - float(weights @ (deficit < -NOTABLE)),
        }

    def _values(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gain at once and the worth to the plan [particles, n], and the utility of the plan [particles].

        The worth of a planned state is what the plan loses without it, that of another one what the plan gains if it
        takes the place of the state whose loss costs least.
        """
        planner, plan, n = self.planner, self.plan, len(self.free)
        gain, worth = (np.zeros((len(self.weights), n)) for _ in range(2))
        if not len(plan):
            return gain, worth, np.zeros(len(self.weights))
        valued, outside = planner.candidates, np.setdiff1d(planner.candidates, plan)
        if self.particles.world.is_large:
            outside = outside[np.argsort(-self.importance[outside], kind="stable")[:FEW_VALUED]]
            valued = np.concatenate([plan, outside])
        gain[:, valued] = planner.by_particle([np.array([s]) for s in valued]).T
        if len(plan) == 1:
            worth[:] = gain
            return gain, worth, gain[:, plan[0]]
        whole, *without = planner.by_particle([plan, *(np.delete(plan, i) for i in range(len(plan)))])
        losses = whole - np.array(without)
        weakest = int((losses @ self.weights).argmin())
        worth[:, plan] = losses.T
        if len(outside):
            kept = np.delete(plan, weakest)
            worth[:, outside] = (planner.by_particle([np.append(kept, s) for s in outside]) - without[weakest]).T
        return gain, worth, whole


def _root(values: FloatArray) -> FloatArray:
    """Return signed square roots, clipped to [-1, 1], so that small values can be told apart."""
    return np.asarray(np.sign(values) * np.sqrt(np.minimum(np.abs(values), 1.0)))
