"""Mean returns of simulated episodes in a tabular world, or in a Gymnasium environment without a table."""

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from selectenv.checks import check_instance, check_int
from selectenv.domains.tabular.discrete_env import DiscreteEnvWorld
from selectenv.domains.tabular.world import TabularWorld
from selectenv.errors import OptionError
from selectenv.io.resources import require_memory
from selectenv.kernels.tabular.sample import rollout_returns
from selectenv.options import LARGEST_SIZE
from selectenv.policies import Policy, PolicyBatch, checked_tables, known
from selectenv.streams import generator, seed_word
from selectenv.typing import FloatArray, IntArray

BYTES = 32
"""Memory per episode of an evaluation."""
LONGEST = 100_000
"""Steps after which an episode of an environment without a time limit is stopped."""


class RolloutReturns:
    """Mean return of simulated episodes; all policies are evaluated with common random numbers."""

    parallel = True
    policies_at_once = 1

    def __init__(self, world: TabularWorld, episodes: int, seed: int = 0) -> None:
        """Simulate ``episodes`` episodes per policy."""
        self.world = check_instance("world", world, TabularWorld)
        self._episodes = check_int("rollouts", episodes, 1, LARGEST_SIZE)
        require_memory(BYTES * self._episodes, f"evaluating by {self._episodes:,} rollouts")
        self._seed = seed_word(check_int("seed", seed, 0), "evaluation")

    def returns(self, policies: PolicyBatch, discount: float) -> FloatArray:
        """Return the mean return of each policy [policies]."""
        tables = one_by_one(policies, self.world.n_states, self.world.n_actions)
        return np.array([self._episode_returns(table, discount)[0].mean() for table in tables])

    def episode_returns(self, policy: Policy, discount: float = 1.0) -> tuple[FloatArray, IntArray]:
        """Return the returns and lengths [episodes] of the episodes of one policy."""
        return self._episode_returns(known(policy.probabilities(np.arange(self.world.n_states))), discount)

    def _episode_returns(self, table: FloatArray, discount: float) -> tuple[FloatArray, IntArray]:
        cumulative = np.cumsum(table, axis=1)
        cumulative[cumulative >= cumulative[:, -1:] - 1e-12] = 1.0
        returns, lengths = np.empty(self._episodes), np.empty(self._episodes, np.int64)
        rollout_returns(self.world.walk, cumulative, discount, np.array([self._seed]), lengths, returns)
        return returns, lengths


class EnvironmentReturns:
    """Mean return of episodes in a Gymnasium environment with discrete observations."""

    parallel = False
    policies_at_once = 1

    def __init__(
        self, world: DiscreteEnvWorld, ids: NDArray[np.int64], n_actions: int, episodes: int, seed: int = 0
    ) -> None:
        """Play ``episodes`` episodes per policy, at most `LONGEST` steps each; unknown states get random actions.

        Args:
            world: the environment.
            ids: [n] observations that are states of the data.
            n_actions: number of actions of the data.
            episodes: number of episodes.
            seed: seed of the evaluation.

        Raises:
            OptionError: the environment's spaces are not those of the data.
        """
        env: Any = world.env
        spaces = env.observation_space, env.action_space
        if not all(isinstance(space, gym.spaces.Discrete) for space in spaces) or ids.dtype.kind not in "iu":
            raise OptionError(f"rollouts need discrete observations and actions and integer ids, not {spaces}")
        if int(env.action_space.n) != n_actions or env.action_space.start != 0:
            raise OptionError(f"the data have {n_actions} actions, the environment has {env.action_space.n}")
        self._env, self._episodes, self._seed = env, check_int("rollouts", episodes), seed
        self._n_actions = n_actions
        self._number = {int(state): number for number, state in enumerate(ids)}

    def returns(self, policies: PolicyBatch, discount: float) -> FloatArray:
        """Return the mean return of each policy [policies]."""
        tables = one_by_one(policies, len(self._number), self._n_actions)
        return np.array([self._mean(table, discount) for table in tables])

    def _mean(self, table: FloatArray, discount: float) -> float:
        rng = generator(self._seed, "evaluation")
        total = 0.0
        for episode in range(self._episodes):
            observation, _ = self._env.reset(seed=int(rng.integers(2**31)) if episode == 0 else None)
            factor = 1.0
            for _ in range(LONGEST):
                number = self._number.get(int(observation))
                action = rng.choice(table.shape[1], p=None if number is None else table[number])
                observation, reward, terminated, truncated, _ = self._env.step(int(action))
                total += factor * float(reward)
                factor *= discount
                if terminated or truncated:
                    break
        return total / self._episodes


def one_by_one(policies: PolicyBatch, n_states: int, n_actions: int) -> FloatArray:
    """Return the tables of policies as [policies, n, actions]."""
    blocks = checked_tables(policies, n_states, n_actions)
    return np.moveaxis(blocks, 3, 1).reshape(-1, n_states, n_actions)[: len(policies)]
