"""The evaluator: policy -> expected return in the true world; it counts every call."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from selectenv.checks import as_array, check_int, check_real
from selectenv.datasets.dataset import OfflineDataset
from selectenv.domains.minatar.games import Games, MinAtarWorld, stream_keys
from selectenv.domains.tabular.world import TabularWorld, longest_path
from selectenv.errors import DatasetError, LabelError, NoEvaluatorError, OptionError, PhaseError, UnseenStatesWarning
from selectenv.kernels.network.packed_images import draw_actions
from selectenv.kernels.tabular.returns import returns_of_blocks
from selectenv.kernels.tabular.sample import rollout_returns
from selectenv.policies import Player
from selectenv.streams import generator, seed_word
from selectenv.typing import BoolArray, FloatArray, IntArray, UintArray

EVALUATORS = ("exact", "rollout")
_PLAYING = Lock()
"""Games are played in Python: two threads at once would only get into each other's way, but others may still learn."""
POLICY_BYTES = 1 << 26
"""Policies that are played side by side take no more memory than this."""
LONGEST = 100_000
"""Steps after which an episode of an environment without a time limit is given up."""


class ReturnEngine(Protocol):
    """Computes returns; knows nothing of counting."""

    @property
    def parallel(self) -> bool:
        """Whether several threads may ask at once."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of states and actions of a policy."""

    def returns(self, policies: FloatArray, discount: float) -> FloatArray:
        """Return the expected returns [blocks, lanes] of policies [blocks, n, actions, lanes]."""


class ExactReturns:
    """Expected return to the horizon, by dynamic programming."""

    parallel = True

    def __init__(self, world: TabularWorld) -> None:
        """Prepare the exact returns of policies in ``world``."""
        self.world = world
        self.shape = world.n_states, world.n_actions
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

    parallel = True

    def __init__(self, world: TabularWorld, episodes: int, seed: int = 0) -> None:
        """Simulate ``episodes`` episodes a policy."""
        self.world, self._episodes = world, check_int("rollouts", episodes)
        self.shape = world.n_states, world.n_actions
        self._seed = seed_word(seed, "evaluation")

    def episode_returns(self, policy: FloatArray, discount: float = 1.0) -> tuple[FloatArray, IntArray]:
        """Return the returns and lengths of the episodes of one policy [n, actions]."""
        cumulative = np.cumsum(policy, axis=1)
        cumulative[cumulative >= cumulative[:, -1:] - 1e-12] = 1.0
        returns, lengths = np.empty(self._episodes), np.empty(self._episodes, np.int64)
        rollout_returns(self.world.walk, cumulative, discount, np.array([self._seed]), lengths, returns)
        return returns, lengths

    def returns(self, policies: FloatArray, discount: float) -> FloatArray:
        """Return the mean returns [blocks, lanes] of policies [blocks, n, actions, lanes]."""
        means = [self.episode_returns(policy, discount)[0].mean() for policy in _one_by_one(policies)]
        return np.array(means).reshape(len(policies), -1)


class EnvironmentReturns:
    """Mean return of episodes in a Gymnasium environment with discrete observations: for worlds without a model."""

    parallel = False

    def __init__(self, env: Any, ids: NDArray[Any], n_actions: int, episodes: int, seed: int = 0) -> None:
        """Play ``episodes`` episodes a policy, at most `LONGEST` steps each; states not among ``ids`` act at random.

        Raises:
            OptionError: the environment's spaces are not those of the data.
        """
        spaces = env.observation_space, env.action_space
        if not all(isinstance(space, gym.spaces.Discrete) for space in spaces) or ids.dtype.kind not in "iu":
            raise OptionError(f"rollouts need discrete observations and actions and integer ids, not {spaces}")
        if int(env.action_space.n) != n_actions or env.action_space.start != 0:
            raise OptionError(f"the data have {n_actions} actions, the environment {env.action_space.n}")
        self._env, self._episodes, self._seed = env, check_int("rollouts", episodes), seed
        self._number = {int(state): number for number, state in enumerate(ids)}
        self.shape = len(ids), n_actions

    def returns(self, policies: FloatArray, discount: float) -> FloatArray:
        """Return the mean returns [blocks, lanes] of policies [blocks, n, actions, lanes]."""
        means = [self._mean(policy, discount) for policy in _one_by_one(policies)]
        return np.array(means).reshape(len(policies), -1)

    def _mean(self, policy: FloatArray, discount: float) -> float:
        rng = generator(self._seed, "evaluation")
        total = 0.0
        for episode in range(self._episodes):
            observation, _ = self._env.reset(seed=int(rng.integers(2**31)) if episode == 0 else None)
            factor = 1.0
            for _ in range(LONGEST):
                number = self._number.get(int(observation))
                action = rng.choice(policy.shape[1], p=None if number is None else policy[number])
                observation, reward, terminated, truncated, _ = self._env.step(int(action))
                total += factor * float(reward)
                factor *= discount
                if terminated or truncated:
                    break
        return total / self._episodes


class GameReturns:
    """Mean return of episodes of a MinAtar game; every policy meets the same random numbers.

    Pictures that are not in the data are acted in at random: a table knows nothing of them. Where that is most of what
    is met, returns say little about the policy, and a warning says so: in Asterix, Seaquest and Freeway nearly every
    moment looks new, and no table learned from a million transitions plays well there.
    """

    parallel = True

    def __init__(self, world: MinAtarWorld, dataset: OfflineDataset, episodes: int, seed: int = 0) -> None:
        """Play ``episodes`` episodes a policy over the states of ``dataset``.

        Raises:
            DatasetError: the data have no pictures of this game.
        """
        if dataset.pictures is None or dataset.pictures.shape != world.shape or dataset.n_actions != world.n_actions:
            raise DatasetError(f"the dataset holds no pictures of {world.name}: collect it from the game")
        self.world, self._ids, self._pictures = world, dataset.ids, dataset.pictures
        self.shape = dataset.n_states, dataset.n_actions
        self._keys = stream_keys(check_int("rollouts", episodes), seed, "evaluation")
        self.sets_at_once = int(np.clip(POLICY_BYTES // (8 * dataset.n_states * dataset.n_actions), 1, 16))
        self._spare: list[Games] = []  # games to use again; each thread takes one out

    def episode_returns(self, policies: FloatArray, discount: float = 1.0) -> tuple[FloatArray, IntArray]:
        """Return the returns [policies, episodes] of policies [policies, n, actions], and steps in all and unseen."""
        episodes = len(self._keys)
        steps = np.zeros(2, np.int64)

        def choose(playing: IntArray, pictures: BoolArray, keys: UintArray, step: int) -> IntArray:
            number = self._pictures.find(self._ids, pictures)
            steps[0] += len(playing)
            steps[1] += np.count_nonzero(number < 0)
            return draw_actions(policies, playing // episodes, number, keys, step)

        return self._play(len(policies), choose, discount), steps

    def player_returns(self, player: Player, discount: float = 1.0) -> FloatArray:
        """Return the returns [episodes] of one player."""

        def choose(playing: IntArray, pictures: BoolArray, keys: UintArray, step: int) -> IntArray:
            chances = player.probabilities(pictures)
            return draw_actions(
                chances[None], np.zeros(len(keys), np.int64), np.arange(len(keys), dtype=np.int32), keys, step
            )

        with _PLAYING:
            returns: FloatArray = self._play(1, choose, discount)[0]
        return returns

    def _play(self, count: int, choose: "Choose", discount: float) -> FloatArray:
        """Return the returns [count, episodes] of what ``choose`` does with so many players in each episode."""
        episodes = len(self._keys)
        keys = np.tile(self._keys, (count, 1))
        games = self._spare.pop() if self._spare else None
        if games is None or len(games) < len(keys):
            games = Games(self.world, keys)
        else:
            games.begin(keys)
        total = np.zeros(len(keys))
        playing, factor = np.arange(len(keys)), 1.0
        for step in range(self.world.horizon):
            moves = games.step(choose(playing, games.pictures[playing], keys[playing, 0], step), playing)
            total[playing] += factor * moves.reward
            factor *= discount
            playing = playing[~(moves.terminated | moves.truncated)]
            if len(playing) == 0:
                break
        self._spare.append(games)
        return total.reshape(count, episodes)

    def returns(self, policies: FloatArray, discount: float) -> FloatArray:
        """Return the mean returns [blocks, lanes] of policies [blocks, n, actions, lanes]."""
        with _PLAYING:
            returns, (steps, unseen) = self.episode_returns(_one_by_one(policies), discount)
        if unseen > 0.5 * steps:
            warnings.warn(
                f"{100 * unseen / steps:.0f} % of the pictures met in {self.world.name} are not in the data, where a "
                "table can only act at random: use more data, or a learner that generalises",
                UnseenStatesWarning,
                stacklevel=2,
            )
        means: FloatArray = returns.mean(axis=1).reshape(len(policies), -1)
        return means


Choose = Callable[[IntArray, BoolArray, UintArray, int], IntArray]
"""Which games are playing, their pictures, keys of their chance, the step -> actions."""


def _one_by_one(policies: FloatArray) -> FloatArray:
    """Return policies [blocks, n, actions, lanes] as [blocks * lanes, n, actions]."""
    return np.moveaxis(policies, 3, 1).reshape(-1, *policies.shape[1:3])


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

    def __init__(
        self, engine: ReturnEngine | None, discount: float = 1.0, counts: Calls | None = None, *, locked: bool = False
    ) -> None:
        """Count the calls to ``engine``; without an engine every call is refused."""
        self.engine, self.discount = engine, check_real("discount", discount, "(0, 1]")
        self.counts = Calls() if counts is None else counts
        self.locked = locked
        """While it is, every call is refused."""

    @property
    def available(self) -> bool:
        """Whether there is a world to evaluate in."""
        return self.engine is not None

    @property
    def parallel(self) -> bool:
        """Whether several threads may evaluate at once."""
        return self.engine is not None and self.engine.parallel

    @property
    def sets_at_once(self) -> int:
        """Policies that are worth evaluating in one go."""
        return getattr(self.engine, "sets_at_once", 1)

    @property
    def calls(self) -> int:
        """Evaluations asked for."""
        return self.counts.asked

    def ask(self, sets: int, computed: int) -> None:
        """Count evaluations a strategy asks for.

        Raises:
            PhaseError: the test phase refuses them.
        """
        self._check_unlocked()
        self.counts.asked += sets
        self.counts.computed += computed

    def evaluate(self, policy: FloatArray, discount: float | None = None) -> float:
        """Return the expected return of one policy [n, actions]; counts as one call.

        Args:
            policy: action probabilities.
            discount: of rewards; the evaluator's own (1 unless said otherwise) if left out.

        Raises:
            LabelError: the policy is no table of action probabilities of this world.
        """
        table = as_array("a policy", policy)
        numbers = table.dtype.kind in "fiu" and table.ndim == 2
        if not numbers or (table < 0).any() or not np.allclose(table.sum(axis=1), 1):
            raise LabelError("a policy must be an array of action probabilities [n, actions] whose rows sum to 1")
        used = self.discount if discount is None else check_real("discount", discount, "(0, 1]")
        self._check_fits(table.shape)
        self.ask(1, 1)
        return float(self.returns(table[None, :, :, None].astype(np.float64), used)[0, 0])

    def returns(self, policies: FloatArray, discount: float | None = None) -> FloatArray:
        """Return expected returns [blocks, lanes] of policies [blocks, n, actions, lanes], uncounted."""
        self._check_unlocked()
        self._check_fits(policies.shape[1:3])
        assert self.engine is not None
        return self.engine.returns(np.ascontiguousarray(policies), self.discount if discount is None else discount)

    def player_return(self, players: Sequence[Player], discount: float | None = None) -> float:
        """Return the expected return of players that act on pictures, the mean over all of them, uncounted."""
        self._check_unlocked()
        if not isinstance(self.engine, GameReturns):
            raise NoEvaluatorError("players that act on pictures need a MinAtar world to play in")
        used = self.discount if discount is None else discount
        return float(np.mean([self.engine.player_returns(player, used).mean() for player in players]))

    def _check_unlocked(self) -> None:
        if self.locked:
            raise PhaseError("the test phase refuses the evaluator until the episode has ended")

    def _check_fits(self, shape: tuple[int, ...]) -> None:
        if self.engine is None:
            raise NoEvaluatorError("this problem has no evaluator: it was made from data without a world")
        if shape != self.engine.shape:
            raise LabelError(f"a policy of shape {shape} does not fit this world: it needs {self.engine.shape}")
