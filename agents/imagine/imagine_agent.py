"""imagine: labels what is worth most under reward functions that the data and the labels so far make plausible."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from agents.base import Info, Observation, RankingAgent, Taxonomy, feature, only_open
from agents.errors import NotTrainedError
from agents.imagine.behaviour_likelihood import Behaviour
from agents.imagine.imagined_model import ImaginedModel
from agents.imagine.outlook import Outlook
from agents.imagine.particles import Particles
from agents.imagine.reward_prior import FAMILIES, is_sparse
from agents.imagine.set_planner import SetPlanner
from agents.learned.selector import LearnedSelector
from agents.registry import register
from selectenv.checks import check_flag, check_instance, check_int, check_name, check_real
from selectenv.errors import LargeWorldWarning, OptionError
from selectenv.streams import generator
from selectenv.typing import BoolArray, FloatArray, IntArray
from selectenv.view import SelectionView

MOST_STATES = 2_000
"""Larger worlds are labelled by `learned`."""
FIRST_MOVES, MOVES = 12, 8
"""Proposals per particle at each temperature at the start, and after each label; in large worlds a third and a half."""
FIRST_EVALUATIONS, EVALUATIONS, FEW_EVALUATIONS = 200, 60, 20
"""Label sets tried to improve the first plan, every later one, and every plan in large worlds."""
CHOICES = {
    "all": FAMILIES,
    "sparse": tuple(family for family in FAMILIES if not family.dense),
    "dense": tuple(family for family in FAMILIES if family.dense),
}
LIKELY, SURE = 0.1, 100.0
"""Before rewards differ, the state that pays most with this probability is labelled first; and how much that scores."""
CANDIDATES, FEW_CANDIDATES = 64, 4
"""States that plans consider, unless the budget is larger (half as many in large worlds), and in each step there."""
PLANNED_PARTICLES, FEW_PARTICLES = 32, 16
"""Most particles that plans average over, and most in large worlds."""
UNLIKELY = 1e-3
"""Particles that are less probable are left out of plans."""
CURIOSITY, TIES = 0.3, 1e-3
"""Weight of how little is known about the rewards of a state in the order of a plan, and among states outside of it."""


@register("imagine")
@dataclass
class Imagine(RankingAgent):
    """Imagines reward functions, plans the labels that are worth most under them, labels one, and imagines again.

    The labels are a function of the data, the terms of the episode, the labels so far and the options: the random
    generator of the episode is not used.
    """

    particles: int = 64
    """Number of reward functions."""
    observations: float = 12.0
    """Number of observations of the behaviour that a state counts for at most; 0 ignores the behaviour."""
    bonus: float = 4.0
    """Weight of what the data's policy earns more than a random one."""
    planning: bool = True
    """Whether the whole remaining budget is planned; otherwise the next label is the one that adds most at once."""
    families: str = "all"
    """Families of reward functions: "all", "sparse" or "dense"."""
    seed: int = 0
    """Seed of the imagination."""

    name = "imagine"
    features = ("labelled",)
    taxonomy = Taxonomy(test_loop="closed", training="none", evaluator="never")

    def __post_init__(self) -> None:
        """Reject invalid options."""
        check_int("particles", self.particles, 2)
        check_real("observations", self.observations, "[0, inf)")
        check_real("bonus", self.bonus, "[0, inf)")
        check_flag("planning", self.planning)
        check_name("value of `families`", self.families, CHOICES)
        check_int("seed", self.seed, 0)
        self._view: SelectionView | None = None
        self._first: Particles | None = None
        """The particles before any label; another episode with the same data begins with them."""
        self._known: tuple[Any, ...] = ()
        """What they depend on."""
        self._instead: LearnedSelector | None = None

    def begin(self, view: SelectionView) -> None:
        """Imagine reward functions that explain the behaviour.

        Raises:
            OptionError: the learner knows something that no label reveals, which cannot be imagined.

        Warns:
            LargeWorldWarning: the world has too many states, and `learned` labels it instead.
        """
        check_instance("view", view, SelectionView)
        if view.oracle:
            raise OptionError(
                f"{self.name} cannot imagine a learner that knows {view.oracle}: use impute='min' or a number, or an "
                "agent that does not imagine, such as 'learned'"
            )
        self._view = view
        self._instead = None
        if view.dataset.n_states > MOST_STATES:
            warnings.warn(
                f"{self.name} imagines rewards of up to {MOST_STATES:,} states, and there are "
                f"{view.dataset.n_states:,}: 'learned' chooses the labels instead",
                LargeWorldWarning,
                stacklevel=2,
            )
            self._instead = LearnedSelector()
            self._instead.begin(view)
            return
        known = view.dataset, view.gamma, self.particles, self.observations, self.bonus, self.families, self.seed
        if self._first is None or self._known[1:] != known[1:] or self._known[0] is not known[0]:
            self._first, self._known = None, known
        self._world = ImaginedModel(view)
        self._behaviour = Behaviour(self._world, self.observations, self.bonus if self.observations else 0.0)
        self._restart()

    @property
    def is_replaced(self) -> bool:
        """Whether `learned` labels the world, because it has too many states."""
        return self._instead is not None

    def scores(self, obs: Observation, info: Info) -> FloatArray:
        """Return, for planned states, 1 plus what their loss would cost, and for others less than 1; NaN if closed."""
        if self._instead is not None:
            return self._instead.scores(obs, info)
        return only_open(self.outlook(obs).scores.copy(), info)

    def outlook(self, obs: Observation) -> Outlook:
        """Return what is imagined after the labels so far, and the plan; not for worlds labelled by `learned`."""
        if self._view is None:
            raise NotTrainedError(
                f"{self.name} does not know the data yet: call agent.begin(env.unwrapped.view()) after reset"
            )
        self._catch_up(labels_in_order(obs, self._view.budget))
        return self._outlook

    def _restart(self) -> None:
        """Forget all labels."""
        if self._first is None:
            rng, families = generator(self.seed, "imagine"), CHOICES[self.families]
            moves = FIRST_MOVES // 3 if self._world.is_large else FIRST_MOVES
            self._first = Particles(self._world, self._behaviour, families, self.particles, moves, rng)
        self._particles = self._first.copy()
        self._seen: list[tuple[int, bool]] = []
        self._plan = np.empty(0, np.int64)

    def _catch_up(self, labels: IntArray) -> None:
        """Learn from labels that are new, one by one, and plan again after each.

        A state that was chosen but whose rewards have not been told yet counts as labelled and teaches nothing.
        """
        assert self._view is not None
        rewards, data = self._view.rewards, self._world.data
        now = [(s, not np.isnan(rewards[data.transitions_of(np.array([s]))]).all()) for s in labels.tolist()]
        if now[: len(self._seen)] != self._seen:
            self._restart()
        free = data.labelable.copy()
        free[labels[: len(self._seen)]] = False
        if not self._seen:
            self._make_plan(free, 0)
        moves = MOVES // 2 if self._world.is_large else MOVES
        for state, told in now[len(self._seen) :]:
            self._seen.append((state, told))
            free[state] = False
            rng = generator(self.seed, "imagine", len(self._seen))
            if told:
                self._particles.learn(state, self._mean_rewards(state, rewards), moves, rng)
            self._make_plan(free, len(self._seen))

    def _make_plan(self, free: BoolArray, spent: int) -> None:
        """Plan the remaining labels, starting from the plan before."""
        assert self._view is not None
        left = max(0, min(self._view.budget - spent, int(free.sum())))
        rewards, weights = self._planned_particles(spent)
        labelled = self._world.data.labelable & ~free
        importance = self._behaviour.importance(rewards, weights)
        candidates = np.flatnonzero(free)
        most = CANDIDATES // 2 if self._world.is_large else CANDIDATES
        if len(candidates) > max(most, left):
            likely = np.argsort(-importance[candidates], kind="stable")[: max(most, left + most // 4)]
            candidates = np.sort(candidates[likely])
        planner = SetPlanner(
            lambda masks: self._world.worth(rewards, masks), weights, labelled, free, candidates, importance
        )
        doubt = self._doubt(rewards, weights)
        scores, chance = np.where(free, TIES * doubt, 0.0), self._chance_of_best()
        if left == 1 or (left and not self.planning):
            scores[planner.candidates] += planner.utilities([np.array([s]) for s in planner.candidates])
            plan = np.array([np.where(free, scores, -np.inf).argmax()])
        elif left:
            self._plan = plan = self._improved_plan(planner, free, left, spent)
            scores[plan] += 1.0 + planner.losses(plan) + CURIOSITY * doubt[plan]
            likely = np.where(free, chance, 0.0)
            if not self._particles.differs and likely.max() > LIKELY:
                scores[int(likely.argmax())] += SURE
        else:
            plan = np.empty(0, np.int64)
        self._outlook = Outlook(
            self._particles, planner, plan, scores, free.copy(), rewards, weights, doubt, chance, importance
        )

    def _improved_plan(self, planner: SetPlanner, free: BoolArray, left: int, spent: int) -> IntArray:
        """Return ``left`` states, starting from the plan before."""
        plan = self._plan[free[self._plan]][:left]
        rng = generator(self.seed, "imagine", "plan", spent)
        if len(plan):
            evaluations = FEW_EVALUATIONS if self._world.is_large else EVALUATIONS
            return planner.improve(planner.extend(plan, left), evaluations, rng)
        if self._world.is_large:
            plans = [planner.forward(left, FEW_CANDIDATES)]
        else:
            plans = [planner.forward(left), planner.backward(left)]
        evaluations = FEW_EVALUATIONS if self._world.is_large else FIRST_EVALUATIONS
        return planner.improve(plans[int(planner.utilities(plans).argmax())], evaluations, rng)

    def _planned_particles(self, spent: int) -> tuple[FloatArray, FloatArray]:
        """Return the rewards [particles, pairs] and probabilities [particles] that plans average over."""
        rewards, weights = self._particles.rewards, self._particles.weights
        most = FEW_PARTICLES if self._world.is_large else PLANNED_PARTICLES
        if len(weights) > most:
            rng = generator(self.seed, "imagine", "particles", spent)
            places = (rng.random() + np.arange(most)) / most
            kept = np.minimum(np.searchsorted(np.cumsum(weights), places), len(weights) - 1)
            chosen, counts = np.unique(kept, return_counts=True)
            return rewards[chosen], counts / counts.sum()
        kept = np.flatnonzero(weights > UNLIKELY)
        return rewards[kept], weights[kept] / weights[kept].sum()

    def _mean_rewards(self, state: int, rewards: FloatArray) -> FloatArray:
        """Return the mean revealed reward of each pair of a state; an unknown one is the mean of the others."""
        data, world = self._world.data, self._world
        rows = data.transitions_of(np.array([state]))
        known = rows[~np.isnan(rewards[rows])]
        total = np.bincount(data.action[known], rewards[known], data.n_actions)
        count = np.bincount(data.action[known], minlength=data.n_actions)
        mean = np.where(count > 0, total / np.maximum(count, 1), rewards[known].mean())
        return np.asarray(mean[world.action[world.state == state]])

    def _chance_of_best(self) -> FloatArray:
        """Return the probability [n] that rewards are sparse and a state pays the largest one, which is positive."""
        rewards, particles = self._particles.rewards, self._particles
        goal = is_sparse(particles.families, particles.family) & (rewards.max(axis=1) > 0)
        found = np.zeros(self._world.data.n_states)
        np.add.at(found, self._world.state[rewards.argmax(axis=1)], np.where(goal, particles.weights, 0.0))
        return found

    def _doubt(self, rewards: FloatArray, weights: FloatArray) -> FloatArray:
        """Return how much particles disagree about the rewards of each state [n], as a share of the largest doubt."""
        relative = rewards / np.maximum(np.abs(rewards).max(axis=1, keepdims=True), 1e-12)
        spread = weights @ np.abs(relative - weights @ relative)
        doubt = np.zeros(self._world.data.n_states)
        np.maximum.at(doubt, self._world.state, spread)
        return np.asarray(doubt / max(float(doubt.max()), 1e-12))


def labels_in_order(obs: Observation, budget: int) -> IntArray:
    """Return the numbers of the labelled states, in the order in which they were labelled."""
    when = np.rint(feature(obs, "labelled") * budget).astype(np.int64)
    labelled = np.flatnonzero(when)
    return labelled[np.argsort(when[labelled], kind="stable")]
