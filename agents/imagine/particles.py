"""Reward functions that are plausible given the behaviour in the data and the rewards revealed so far.

Particles are drawn from the prior, weighted by the likelihood of the behaviour in annealed steps, resampled and moved
by Metropolis-Hastings proposals. A label conditions all particles on the rewards that it revealed.
"""

from copy import copy

import numpy as np

from agents.imagine.behaviour_likelihood import Behaviour
from agents.imagine.imagined_model import ImaginedModel
from agents.imagine.reward_prior import (
    BOTH,
    GAINS,
    LOSSES,
    Family,
    Features,
    danger_sizes,
    draw_particles,
    goal_sizes,
    is_sparse,
    signs_of,
    sizes,
    step_sizes,
)
from selectenv.typing import FloatArray, IntArray

TEMPERATURES = (0.1, 0.3, 0.6, 1.0)
"""Powers of the likelihood in the annealed steps."""
TOLERANCE = 0.05
"""A prediction within this share of the scale of the rewards is right."""
MISMATCH = -3.0
"""Log weight of every labelled state whose rewards a particle does not explain."""
VARIANCES = {"step": 1.0, "action": 1e-4, "enter": 1e-2, "end": 1.0, "pair": 1e-3}
"""How readily each kind of coefficient of a sparse family explains a revealed reward."""
FEWEST = 4
"""Particles that every family keeps, however implausible it is: labels may change that."""
TRUST = 0.2
"""Weight of the behaviour in the comparison of families."""
SELECTED = 3.0
"""How much better the behaviour of a sparse family fits because its particles were selected for that."""
ROUNDS, FEW_ROUNDS = 25, 6
"""Rounds in which dense families are made to imitate the behaviour, and in large worlds."""
DENSE_VARIANCES = {"step": 1e-4, "action": 1e-6, "enter": 1.0, "end": 1.0, "pair": 1e-3}


class Particles:
    """A sample of reward functions."""

    def __init__(
        self,
        world: ImaginedModel,
        behaviour: Behaviour,
        families: tuple[Family, ...],
        count: int,
        moves: int,
        rng: np.random.Generator,
    ) -> None:
        """Draw particles that explain the behaviour.

        Args:
            world: the empirical model.
            behaviour: the likelihood of the data's actions.
            families: the prior.
            count: number of particles.
            moves: proposals per particle at each temperature.
            rng: source of randomness.
        """
        self.world, self.behaviour, self.families = world, behaviour, families
        self.features = Features(world)
        self.known = np.zeros(len(world.state), bool)
        """[pairs] whether the reward of a pair is known."""
        self.observed = np.zeros(len(world.state))
        self.scale = 0.0
        """Largest magnitude of a known reward."""
        self.theta, self.family, self.mode = draw_particles(self.features, families, 4 * count, rng)
        self._imitate(rng)
        self.predicted = self.theta @ self.features.matrix
        self.fit = behaviour.log_likelihood(self.predicted)
        before = 0.0
        counts = self._counts(np.full(len(families), 1 / len(families)), count)
        for power in TEMPERATURES:
            self._resample(self.fit * (power - before), counts, rng)
            before = power
            for _ in range(moves):
                self.move(rng, power)
        prior = np.log([family.weight for family in families])
        self.family_weight: FloatArray = prior + TRUST * self._evidence()
        """[families] log weight of each family."""
        self._resample(np.zeros(len(self.fit)), self._counts(self._shares, count), rng)

    @property
    def differs(self) -> bool:
        """Whether two of the known rewards differ."""
        known = self.observed[self.known]
        return bool(len(known)) and float(np.ptp(known)) > TOLERANCE * max(self.scale, 1e-9)

    def copy(self) -> "Particles":
        """Return particles that learn independently of these."""
        other = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(other, name, value.copy())
        return other

    @property
    def _shares(self) -> FloatArray:
        """[families] probability of each family."""
        weight = np.exp(self.family_weight - self.family_weight.max())
        return np.asarray(weight / weight.sum())

    @property
    def weights(self) -> FloatArray:
        """[particles] probability of each particle."""
        counts = np.bincount(self.family, minlength=len(self.families))
        weight = self._shares[self.family] / counts[self.family]
        return np.asarray(weight / weight.sum())

    def _evidence(self) -> FloatArray:
        """Return how well each family explains the behaviour [families], less what its freedom makes easy."""
        evidence = np.full(len(self.families), -np.inf)
        for i, family in enumerate(self.families):
            mine = self.family == i
            if mine.any():
                free = self.behaviour.evidence_of_any_policy if family.dense else np.inf
                evidence[i] = min(float(self.fit[mine].mean()) - SELECTED, free)
        return evidence

    def _counts(self, shares: FloatArray, count: int) -> IntArray:
        """Return the number of particles [families] that each family gets: a few at least."""
        fewest = min(FEWEST, count // len(shares))
        counts = fewest + np.floor((count - fewest * len(shares)) * shares).astype(np.int64)
        counts[int(shares.argmax())] += count - counts.sum()
        return counts

    def _imitate(self, rng: np.random.Generator) -> None:
        """Rearrange the coefficients of dense families so that actions that the data favour are best.

        Every particle aims at a policy that is drawn in proportion to how well it explains the behaviour state by
        state. Chance alone would hardly ever produce it.
        """
        world, features = self.world, self.features
        dense = np.flatnonzero(~is_sparse(self.families, self.family))
        if not len(dense):
            return
        wanted = self.behaviour.draw_policies(len(dense), rng)
        successor = likeliest_successors(world)
        first, count = world.model.first_choice[:-1].astype(np.int64), np.diff(world.model.first_choice)
        states = np.flatnonzero(count > 1)
        width = int(count.max(initial=1))
        place = np.minimum(first[states, None] + np.arange(width), first[states, None] + count[states, None] - 1)
        target = first[states] + np.minimum(wanted[:, states], count[states] - 1)
        by_pair = np.array([self.families[self.family[particle]].dense == "pair" for particle in dense])
        pair, enter = features.block["pair"].start, features.block["enter"].start
        for _ in range(FEW_ROUNDS if world.is_large else ROUNDS):
            q = world.optimal(self.theta[dense] @ features.matrix)
            best = first[states] + q[:, place].argmax(axis=2)
            changed = (best != target) & (rng.random(best.shape) < 0.5)
            top = first[states] + self.theta[dense][:, pair + place].argmax(axis=2)
            row, column = np.nonzero(changed & by_pair[:, None])
            other = np.where(top != target, top, best)[row, column]
            _exchange(self.theta, dense[row], pair + target[row, column], pair + other)
            one, two = successor[target], successor[best]
            changed &= ~by_pair[:, None] & (one >= 0) & (two >= 0) & (one != two)
            for i in np.flatnonzero(changed.any(axis=0)).tolist():
                row = np.flatnonzero(changed[:, i])
                who, at, to = dense[row], enter + one[row, i], enter + two[row, i]
                wrong = self.theta[who, at] < self.theta[who, to]
                _exchange(self.theta, who[wrong], at[wrong], to[wrong])

    @property
    def rewards(self) -> FloatArray:
        """[particles, pairs] the imagined rewards, with the known ones in place."""
        return np.where(self.known, self.observed, self.predicted)

    def _resample(self, log_weight: FloatArray, counts: IntArray, rng: np.random.Generator) -> None:
        """Draw so many particles of each family in proportion to their weights, systematically."""
        kept = []
        for i, count in enumerate(counts.tolist()):
            mine = np.flatnonzero(self.family == i)
            if not len(mine):
                continue
            weight = np.exp(log_weight[mine] - log_weight[mine].max())
            places = (rng.random() + np.arange(count)) / max(count, 1)
            kept.append(mine[np.minimum(np.searchsorted(np.cumsum(weight) / weight.sum(), places), len(mine) - 1)])
        chosen = np.concatenate(kept)
        self.theta, self.predicted, self.fit = self.theta[chosen], self.predicted[chosen], self.fit[chosen]
        self.family, self.mode = self.family[chosen], self.mode[chosen]

    def _mismatches(self, predicted: FloatArray) -> FloatArray:
        """Return the number of labelled states [particles] whose rewards are not as predicted."""
        if not self.known.any():
            return np.zeros(len(predicted))
        wrong = np.abs(predicted[:, self.known] - self.observed[self.known]) > TOLERANCE * max(self.scale, 1e-9)
        first = np.flatnonzero(np.diff(self.world.state[self.known], prepend=-1))
        return np.asarray(np.logical_or.reduceat(wrong, first, axis=1).sum(axis=1), float)

    def move(self, rng: np.random.Generator, power: float = 1.0) -> None:
        """Propose a change of every particle, and accept it by Metropolis-Hastings."""
        theta, ratio = self._propose(rng)
        predicted = self.predicted + (theta - self.theta) @ self.features.matrix
        fit = self.behaviour.log_likelihood(np.where(self.known, self.observed, predicted))
        gain = power * (fit - self.fit) + ratio
        gain += MISMATCH * (self._mismatches(predicted) - self._mismatches(self.predicted))
        accepted = np.log(rng.random(len(theta))) < gain
        self.theta[accepted], self.predicted[accepted] = theta[accepted], predicted[accepted]
        self.fit[accepted] = fit[accepted]

    def _propose(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return changed coefficients [particles, k] and the log prior ratio [particles] that remains."""
        theta, ratio = self.theta.copy(), np.zeros(len(self.theta))
        sparse = is_sparse(self.families, self.family)
        self._propose_sparse(np.flatnonzero(sparse), theta, ratio, rng)
        self._propose_dense(np.flatnonzero(~sparse), theta, rng)
        return theta, ratio

    def _propose_sparse(self, who: IntArray, theta: FloatArray, ratio: FloatArray, rng: np.random.Generator) -> None:
        """Move, add, remove or change goals and dangers, or change the cost of a step."""
        features, scale = self.features, self.scale or 1.0
        first = features.block["enter"].start
        points = theta[who, first:] != 0
        count = points.sum(axis=1)
        at = first + np.where(points, rng.random(points.shape), -1.0).argmax(axis=1)
        kind = rng.choice(5, len(who), p=[0.35, 0.2, 0.2, 0.15, 0.1])
        kind = np.where((count == 0) & np.isin(kind, (0, 2, 3)), 1, kind)
        old = theta[who, at]
        few = np.array([family.few for family in self.families])[self.family[who]]
        goals = np.array([family.goals for family in self.families])[self.family[who]]
        dangers = np.array([family.dangers for family in self.families])[self.family[who]]
        gain = np.where(kind == 1, rng.random(len(who)) < 0.5, old > 0)
        gain = np.where(goals < 0, False, np.where(dangers < 0, True, gain))
        draw = rng.random(len(who))
        places = np.where(
            few,
            _categorical(features.few, draw),
            np.where(gain, _categorical(features.goal, draw), _categorical(features.danger, draw)),
        )
        shape = (len(who),)
        fresh = scale * np.where(gain, goal_sizes(rng, shape), -danger_sizes(rng, shape))
        expected = 1.0 + np.where(gain, goals, dangers)
        same = np.where(gain[:, None], theta[who, first:] > 0, theta[who, first:] < 0).sum(axis=1)
        for move, where in ((m, np.flatnonzero(kind == m)) for m in range(5)):
            mine = who[where]
            if move == 0:
                theta[mine, at[where]] = 0.0
                theta[mine, places[where]] = old[where]
            elif move == 1:
                taken = theta[mine, places[where]] != 0
                theta[mine, places[where]] = fresh[where]
                ratio[mine] += np.where(taken, 0.0, np.log(expected[where] / (same[where] + 1)))
            elif move == 2:
                theta[mine, at[where]] = 0.0
                ratio[mine] += np.log(np.maximum(same[where], 1) / expected[where])
            elif move == 3:
                theta[mine, at[where]] = fresh[where]
            else:
                step = np.array([family.step for family in self.families])[self.family[mine]]
                costs = rng.random(len(mine)) < step
                size = np.where(step == 1.0, goal_sizes(rng, mine.shape), step_sizes(rng, mine.shape))
                theta[mine, 0] = -scale * costs * size

    def _propose_dense(self, who: IntArray, theta: FloatArray, rng: np.random.Generator) -> None:
        """Draw a few coefficients anew, or exchange two of them."""
        features, scale = self.features, self._typical or 1.0
        kinds = [family.dense for family in self.families]
        for i, dense in enumerate(kinds):
            mine = who[self.family[who] == i]
            if not dense or not len(mine):
                continue
            low = features.block[dense].start
            high = features.block["end" if dense == "enter" else dense].stop
            times = int(rng.choice([1, 2, 4, 8]))
            if rng.random() < 0.5:
                columns = rng.integers(low, high, (len(mine), times))
                values = scale * signs_of(self.mode[mine], rng, times) * sizes(rng, (len(mine), times))
                theta[mine[:, None], columns] = values
                continue
            for _ in range(times):
                one = rng.integers(low, high, len(mine))
                other = rng.integers(low, high, len(mine))
                if dense == "pair":  # exchange the rewards of two actions at the same state
                    count, start = (part[one - low].astype(np.int64) for part in features.pairs_of)
                    other = low + start + (one - low - start + rng.integers(0, 1 << 30, len(mine))) % count
                theta[mine, one], theta[mine, other] = theta[mine, other], theta[mine, one]

    @property
    def _typical(self) -> float:
        """Median magnitude of the known rewards other than 0; 0 if there are none."""
        known = np.abs(self.observed[self.known])
        return float(np.median(known[known > 0])) if (known > 0).any() else 0.0

    def learn(self, state: int, observed: FloatArray, moves: int, rng: np.random.Generator) -> None:
        """Condition the particles on the rewards of a state.

        Args:
            state: number of the state.
            observed: [pairs of the state] mean revealed rewards.
            moves: proposals per particle.
            rng: source of randomness.
        """
        mine = np.flatnonzero(self.world.state == state)
        largest = float(np.abs(observed).max(initial=0.0))
        if self.scale == 0 and largest > 0:
            self._rescale(mine, observed, largest)
        self.scale = max(self.scale, largest)
        log_weight = self._surprise(mine, observed)
        self._explain(mine, observed)
        self.known[mine], self.observed[mine] = True, observed
        fit = self.behaviour.log_likelihood(self.rewards)
        log_weight += TRUST * (fit - self.fit)
        self.fit = fit
        for i in range(len(self.families)):
            mine = log_weight[self.family == i]
            if len(mine):
                self.family_weight[i] += np.log(np.exp(mine - mine.max()).mean()) + mine.max()
        self._resample(log_weight, self._counts(self._shares, len(fit)), rng)
        for _ in range(moves):
            self.move(rng)

    def _rescale(self, mine: IntArray, observed: FloatArray, largest: float) -> None:
        """Multiply all particles so that they fit the first rewards other than 0."""
        predicted = self.predicted[:, mine]
        fitted = (predicted * observed).sum(axis=1) / np.maximum((predicted**2).sum(axis=1), 1e-12)
        magnitude = np.where(self.theta != 0, np.abs(self.theta), np.nan)
        empty = (self.theta == 0).all(axis=1)[:, None]
        usual = largest / np.nanmedian(np.where(empty, 1.0, magnitude), axis=1)
        dense = ~is_sparse(self.families, self.family)
        usual[dense] *= np.median(np.abs(observed[observed != 0])) / largest
        fitted[dense] = 0.0
        factor = np.where(fitted > 1e-3, fitted, usual)[:, None]
        self.theta, self.predicted = self.theta * factor, self.predicted * factor

    def _surprise(self, mine: IntArray, observed: FloatArray) -> FloatArray:
        """Return the log likelihood [particles] of the rewards that a label revealed."""
        right = (np.abs(self.predicted[:, mine] - observed) <= TOLERANCE * max(self.scale, 1e-9)).all(axis=1)
        sparse = is_sparse(self.families, self.family)
        count = np.count_nonzero(observed)
        expected = np.where(right, 0.0, MISMATCH - 0.7 * count)
        dense = np.full(len(right), -1.5 if count else -1.5 + MISMATCH)
        dense[self.mode == BOTH] -= 0.7 * count
        dense[(self.mode == GAINS) & bool((observed < 0).any())] = 2 * MISMATCH
        dense[(self.mode == LOSSES) & bool((observed > 0).any())] = 2 * MISMATCH
        return np.where(sparse, expected, dense)

    def _explain(self, mine: IntArray, observed: FloatArray) -> None:
        """Change coefficients that no earlier label depends on so that they explain the rewards of a state.

        With coefficients as independent normal variables, this is the conditional expectation of their change.
        """
        matrix = self.features.matrix
        free = np.ones(self.features.n, bool)
        if self.known.any():
            free[np.unique(matrix[:, np.flatnonzero(self.known)].nonzero()[0])] = False
        columns = np.flatnonzero(free)
        block: FloatArray = matrix[:, mine].toarray()[columns]
        for i, family in enumerate(self.families):
            who = np.flatnonzero(self.family == i)
            if not len(who):
                continue
            variance = np.zeros(self.features.n)
            for kind, size in (DENSE_VARIANCES if family.dense else VARIANCES).items():
                variance[self.features.block[kind]] = size
            if family.dense == "pair" or family.few:
                variance[:] = 0.0
                variance[self.features.block["pair"]] = 1.0
            spread = variance[columns, None] * block
            gain = spread @ np.linalg.inv(block.T @ spread + 1e-9 * np.eye(len(mine)))
            change = np.zeros((len(who), self.features.n))
            change[:, columns] = (observed - self.predicted[who][:, mine]) @ gain.T
            self.theta[who] += change
            self.predicted[who] += change @ matrix


def _exchange(theta: FloatArray, who: IntArray, at: IntArray, to: IntArray) -> None:
    """Exchange two coefficients of each particle."""
    theta[who, at], theta[who, to] = theta[who, to], theta[who, at]


def _categorical(chances: FloatArray, draw: FloatArray) -> IntArray:
    """Return one number per uniform draw, distributed as ``chances``."""
    total = np.cumsum(chances)
    return np.asarray(np.minimum(np.searchsorted(total, draw * total[-1], side="right"), len(chances) - 1))


def likeliest_successors(world: ImaginedModel) -> IntArray:
    """Return the state that each pair enters most often [pairs], -1 if it always terminates."""
    model = world.model
    pair = np.repeat(np.arange(len(world.state)), np.diff(model.first_outcome))
    order = np.lexsort((-np.arange(len(pair)), model.probability, pair))  # the first of the likeliest comes last
    found = np.full(len(world.state), -1)
    found[pair[order]] = model.next_state[order]
    return found
