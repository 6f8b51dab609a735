"""The evaluator: policy -> expected return in the true world; it counts every call."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from selectenv.domains.world import TabularWorld, longest_path
from selectenv.errors import NoEvaluatorError, OptionError, PhaseError
from selectenv.kernels.returns import returns_of_blocks
from selectenv.kernels.sample import rollout_returns
from selectenv.streams import generator, seed_word
from selectenv.typing import FloatArray, IntArray

EVALUATORS = ("exact", "rollout")


class ReturnEngine(Protocol):
    """Computes returns; knows nothing of counting."""

    def returns(self, policies: FloatArray, discount: float) -> FloatArray:
        """Return the expected returns [blocks, lanes] of policies [blocks, n, actions, lanes]."""


class ExactReturns:
    """Expected return to the horizon, by dynamic programming."""

    def __init__(self, world: TabularWorld) -> None:
        """Prepare the exact returns of policies in ``world``."""
        self.world = world
        self._one_sweep = world.model.acyclic and longest_path(world.model) <= world.horizon

    def returns(self, policies: FloatArray, discount: float) -> FloatArray:
        """Return the expected returns [blocks, lanes] of policies [blocks, n, actions, lanes]."""
        world = self.world
        out = np.empty((policies.shape[0], policies.shape[3]))
        returns_of_blocks(
            world.model, world.chain, world.start, world.horizon, discount, self._one_sweep, policies, out
        )
        return out


class RolloutReturns:
    """Mean return of simulated episodes; every policy meets the same random numbers."""

    def __init__(self, world: TabularWorld, episodes: int, seed: int = 0) -> None:
        """Simulate ``episodes`` episodes a policy."""
        if isinstance(episodes, bool) or not isinstance(episodes, int) or episodes < 1:
            raise OptionError(f"rollouts must be a whole number of episodes, 1 or more, not {episodes!r}")
        self.world, self._episodes, self._seed = world, episodes, seed_word(seed, "evaluation")

    def episode_returns(self, policy: FloatArray, discount: float = 1.0) -> tuple[FloatArray, IntArray]:
        """Return the returns and lengths of the episodes of one policy [n, actions]."""
        cumulative = np.cumsum(policy, axis=1)
        cumulative[cumulative >= cumulative[:, -1:] - 1e-12] = 1.0
        returns, lengths = np.empty(self._episodes), np.empty(self._episodes, np.int64)
        rollout_returns(self.world.walk, cumulative, discount, np.array([self._seed]), lengths, returns)
        return returns, lengths

    def returns(self, policies: FloatArray, discount: float) -> FloatArray:
        """Return the mean returns [blocks, lanes] of policies [blocks, n, actions, lanes]."""
        blocks, _, _, lanes = policies.shape
        found = [
            [self.episode_returns(policies[b, :, :, w], discount)[0].mean() for w in range(lanes)]
            for b in range(blocks)
        ]
        return np.array(found)


class EnvironmentReturns:
    """Mean return of episodes in a Gymnasium environment with discrete observations: for worlds without a model."""

    def __init__(self, env: Any, ids: IntArray, episodes: int, seed: int = 0) -> None:
        """Play ``episodes`` episodes a policy; states that ``ids`` does not list act at random."""
        self._env, self._episodes, self._seed = env, episodes, seed
        self._number = {int(state): number for number, state in enumerate(ids)}

    def returns(self, policies: FloatArray, discount: float) -> FloatArray:
        """Return the mean returns [blocks, lanes] of policies [blocks, n, actions, lanes]."""
        blocks, _, _, lanes = policies.shape
        return np.array([[self._mean(policies[b, :, :, w], discount) for w in range(lanes)] for b in range(blocks)])

    def _mean(self, policy: FloatArray, discount: float) -> float:
        rng = generator(self._seed, "evaluation")
        total = 0.0
        for episode in range(self._episodes):
            observation, _ = self._env.reset(seed=int(rng.integers(2**31)) if episode == 0 else None)
            factor, over = 1.0, False
            while not over:
                number = self._number.get(int(observation))
                action = rng.choice(policy.shape[1], p=None if number is None else policy[number])
                observation, reward, terminated, truncated, _ = self._env.step(int(action))
                total += factor * float(reward)
                factor *= discount
                over = terminated or truncated
        return total / self._episodes


@dataclass
class Calls:
    """How often an evaluator was used."""

    asked: int = 0
    """Evaluations a strategy asked for, cached ones included: its cost."""
    computed: int = 0
    """Those that had to be computed."""
    scored: int = 0
    """Final scores of episodes and looks of a monitor: no cost of the strategy."""


class Evaluator:
    """Counts calls, and refuses them while it is locked."""

    def __init__(self, engine: ReturnEngine | None, discount: float = 1.0, counts: Calls | None = None) -> None:
        """Count the calls to ``engine``; without an engine every call is refused."""
        if not 0 < discount <= 1:
            raise OptionError(f"discount must lie in (0, 1], not {discount!r}")
        self.engine, self.discount = engine, discount
        self.counts = Calls() if counts is None else counts
        self.locked = False

    @property
    def available(self) -> bool:
        """Whether there is a world to evaluate in."""
        return self.engine is not None

    @property
    def calls(self) -> int:
        """Evaluations asked for."""
        return self.counts.asked

    def ask(self, sets: int, computed: int) -> None:
        """Count evaluations a strategy asks for.

        Raises:
            PhaseError: the test phase refuses them.
        """
        if self.locked:
            raise PhaseError("the test phase refuses the evaluator until the episode has ended")
        self.counts.asked += sets
        self.counts.computed += computed

    def evaluate(self, policy: FloatArray, discount: float | None = None) -> float:
        """Return the expected return of one policy [n, actions]; counts as one call.

        Args:
            policy: action probabilities.
            discount: of rewards; the evaluator's own (1 unless said otherwise) if left out.
        """
        self.ask(1, 1)
        return float(self.returns(policy[None, :, :, None], discount)[0, 0])

    def returns(self, policies: FloatArray, discount: float | None = None) -> FloatArray:
        """Return expected returns [blocks, lanes], uncounted."""
        if self.engine is None:
            raise NoEvaluatorError("this problem has no evaluator: it was made from data without a world")
        return self.engine.returns(np.ascontiguousarray(policies), self.discount if discount is None else discount)
