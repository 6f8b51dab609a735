"""Which reward functions are plausible before any behaviour or label is seen: families of sparse and dense rewards.

A reward function is linear in a few kinds of features:

    R(s, a) = step + cost(a) + sum_s' P(s' | s, a) enter(s') + P(end | s, a) end(s) + pair(s, a).

Sparse families set few of the coefficients (goals, dangers), dense ones all of one kind.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, vstack

from agents.imagine.imagined_model import ImaginedModel
from selectenv.typing import BoolArray, FloatArray, IntArray

BOTH, GAINS, LOSSES = range(3)
"""Signs of a dense reward function."""


@dataclass(frozen=True)
class Family:
    """A family of reward functions."""

    name: str
    weight: float
    """Prior probability, before normalisation."""
    goals: float = -1.0
    """Expected number of goals beyond the first; -1 for none."""
    dangers: float = -1.0
    """Expected number of dangers beyond the first; -1 for none."""
    step: float = 0.0
    """Probability that every step has a cost."""
    dense: str = ""
    """Kind of coefficients that are all set: "enter", "pair", or "" for a sparse family."""
    few: bool = False
    """Whether goals and dangers are rewards of pairs anywhere."""


FAMILIES = (
    Family("goals", 3.0, goals=0.5, step=0.3),
    Family("goals and dangers", 2.0, goals=0.5, dangers=2.0, step=0.3),
    Family("costs and dangers", 1.5, dangers=1.0, step=1.0),
    Family("entries", 1.5, dense="enter"),
    Family("pairs", 2.0, dense="pair"),
    Family("few pairs", 1.0, goals=2.0, dangers=0.5, few=True),
)


class Features:
    """The coefficients of reward functions, numbered 0..k-1, and where goals and dangers are likely."""

    def __init__(self, world: ImaginedModel) -> None:
        """Number the coefficients."""
        data, pairs = world.data, len(world.state)
        everywhere = csr_array(np.ones((1, pairs)))
        actions = csr_array((np.ones(pairs), (world.action, np.arange(pairs))), shape=(data.n_actions, pairs))
        self.ending: IntArray = np.flatnonzero(data.termination > 0)
        row = np.full(data.n_states, -1)
        row[self.ending] = np.arange(len(self.ending))
        at = np.flatnonzero(world.termination > 0)
        ends = csr_array((world.termination[at], (row[world.state[at]], at)), shape=(len(self.ending), pairs))
        single = csr_array((np.ones(pairs), (np.arange(pairs), np.arange(pairs))), shape=(pairs, pairs))
        blocks = {"step": everywhere, "action": actions, "enter": world.entered, "end": ends, "pair": single}
        self.matrix: csr_array = csr_array(vstack(list(blocks.values())))
        """[k, pairs] reward of each pair per unit of each coefficient."""
        sizes = np.cumsum([0, *(block.shape[0] for block in blocks.values())])
        self.block = {name: slice(int(sizes[i]), int(sizes[i + 1])) for i, name in enumerate(blocks)}
        self.n = int(sizes[-1])
        self.pairs_of = np.diff(world.model.first_choice)[world.state], world.model.first_choice[world.state]
        self._locate(world)

    def _locate(self, world: ImaginedModel) -> None:
        """Fill in the probabilities [k] of places of goals, of dangers, and of rewards of few pairs."""
        data = world.data
        goal, danger, few = np.zeros(self.n), np.zeros(self.n), np.zeros(self.n)
        entered = np.bincount(data.next_state[data.next_state >= 0], minlength=data.n_states) > 0
        if len(self.ending):
            ended = np.bincount(data.state[data.terminated], minlength=data.n_states)[self.ending]
            rare = 1 / np.sqrt(ended)
            ends = self.matrix[self.block["end"]]
            sought = (ends @ world.favoured_visits + 1e-9) / (ends @ world.random_visits + 1e-9)
            goal[self.block["end"]] = 0.8 * rare * sought / (rare * sought).sum()
            danger[self.block["end"]] = 0.35 / len(self.ending)
        avoided = np.maximum(1 / data.n_actions - world.frequency, 0.02 / data.n_actions) ** 2
        danger[self.block["pair"]] = 0.25 * avoided / avoided.sum()
        arrivals = entered * (world.entered @ avoided + 1e-12) ** 2
        danger[self.block["enter"]] = 0.4 * arrivals / max(arrivals.sum(), 1e-300)
        goal[self.block["enter"]] = 0.2 * entered / max(entered.sum(), 1)
        few[self.block["pair"]] = 0.5 / len(world.state)
        ending = world.termination > 0
        few[self.block["pair"]] += 0.5 * ending / max(ending.sum(), 1)
        if not (goal > 0).any():
            goal = few.copy()
        self.goal, self.danger, self.few = (place / place.sum() for place in (goal, danger, few))


def sizes(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Return magnitudes of rewards of dense families: mostly of order 1."""
    return np.exp(0.6 * rng.normal(size=shape))


def danger_sizes(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Return magnitudes of dangers: from a small share of a goal to a hundred times as much."""
    return np.asarray(rng.choice([0.3, 1.0, 10.0, 100.0], shape))


def goal_sizes(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Return magnitudes of goals: mostly 1."""
    return np.where(rng.random(shape) < 0.7, 1.0, rng.uniform(0.2, 1.0, shape))


def step_sizes(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Return costs of a step."""
    return np.asarray(rng.choice([0.01, 0.1, 1.0], shape))


def signs_of(mode: IntArray, rng: np.random.Generator, count: int) -> FloatArray:
    """Return signs [particles, count] of dense rewards."""
    both = rng.choice([-1.0, 1.0], (len(mode), count))
    return np.where(mode[:, None] == BOTH, both, np.where(mode[:, None] == GAINS, 1.0, -1.0))


def draw_particles(
    features: Features, families: tuple[Family, ...], count: int, rng: np.random.Generator
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return coefficients [count, k], numbers of families [count] and signs [count] drawn from the prior.

    Families occur in proportion to their weights, as evenly as possible.
    """
    weight = np.array([family.weight for family in families])
    number = np.searchsorted(np.cumsum(weight) / weight.sum(), (np.arange(count) + 0.5) / count)
    mode = rng.choice([BOTH, BOTH, GAINS, LOSSES], count)
    theta = np.zeros((count, features.n))
    for i, family in enumerate(families):
        mine = np.flatnonzero(number == i)
        if family.dense:
            kinds = ("enter", "end") if family.dense == "enter" else ("pair",)
            for kind in kinds:
                block = features.block[kind]
                width = block.stop - block.start
                theta[mine, block] = signs_of(mode[mine], rng, width) * sizes(rng, (len(mine), width))
            continue
        for expected, value, place in (
            (family.goals, goal_sizes, features.goal),
            (family.dangers, danger_sizes, features.danger),
        ):
            if expected < 0:
                continue
            chances = features.few if family.few else place
            points = np.minimum(1 + rng.poisson(expected, len(mine)), (chances > 0).sum())
            owner = np.repeat(mine, points)
            at = rng.choice(features.n, len(owner), p=chances)
            sign = 1.0 if value is goal_sizes else -1.0
            theta[owner, at] = sign * value(rng, (len(owner),))
        costs = rng.random(len(mine)) < family.step
        theta[mine, 0] = -1.0 * costs * (1.0 if family.step == 1.0 else step_sizes(rng, (len(mine),)))
    return theta, number, mode


def is_sparse(families: tuple[Family, ...], number: IntArray) -> BoolArray:
    """Return whether each particle [particles] belongs to a sparse family."""
    return np.array([not family.dense for family in families])[number]
