"""What a strategy that declares training gets in its own process: an environment whose evaluator is far away."""

from typing import Any

import gymnasium as gym
import numpy as np

from experiments.benchmarks.suite.channel import Channel
from experiments.errors import BenchmarkError
from selectenv.datasets.dataset import OfflineDataset
from selectenv.env import RewardSelectionEnv
from selectenv.evaluation.evaluator import Calls, Evaluator
from selectenv.learners import make_learner
from selectenv.observation import Observation, observation_space
from selectenv.problem import Labels, SelectionProblem
from selectenv.typing import BoolArray, FloatArray

ONLY_EVALUATOR = (
    "in the benchmark, strategies train with the evaluator, env.problem.performance or performance_many: they cannot "
    "play training episodes, and there is nothing else to reach"
)


class RemoteProblem(SelectionProblem):
    """The reward-free data of a problem; performances are computed by the benchmark, which counts them."""

    def __init__(self, dataset: OfflineDataset, channel: Channel, calls: Calls, rule: str) -> None:
        """Ask for performances over ``channel``."""
        super().__init__(dataset, make_learner(rule), Evaluator(None, counts=calls))
        self._channel = channel

    @property
    def has_performance(self) -> bool:
        """Whether performances can be asked for: always."""
        return True

    @property
    def warm_starts(self) -> bool:
        """Whether `performance_with` is faster than `performance_many`: never."""
        return False

    def performance_many(self, masks: BoolArray) -> FloatArray:
        """Return the performance of label sets [sets, n]; counts one call per set."""
        given = np.asarray(masks)
        if given.dtype != np.bool_ or given.ndim != 2 or given.shape[1] != self.n_states:
            return super().performance_many(masks)  # raises the error that describes them
        if len(given) == 0:
            return np.empty(0)
        self._channel.send("evaluate", {"masks": given})
        values: FloatArray = self._channel.receive().arrays["values"]
        self.evaluator.count(asked=len(given), computed=len(given))
        return values

    def performance(self, labels: Labels) -> float:
        """Return the performance of a label set; counts as one evaluator call."""
        return float(self.performance_many(self.mask(labels)[None])[0])

    def score(self, labels: Labels) -> float:
        """Return NaN: scores are known to the benchmark alone."""
        return float("nan")

    def with_calls(self, calls: Calls | None = None) -> SelectionProblem:
        """Return the same problem: the benchmark counts."""
        return self


class RemoteEnv(RewardSelectionEnv):
    """An environment for `Agent.train` with the evaluator of the benchmark and without episodes."""

    def __init__(
        self, problem: RemoteProblem, calls: Calls, budget: int, observation: Observation, mask: BoolArray
    ) -> None:
        """Show the start of an episode.

        Args:
            problem: the data and the remote evaluator.
            calls: the counts of the problem.
            budget: number of labels.
            observation: what is observed at reset.
            mask: [n] the states that can be labelled.
        """
        self.problem, self.calls, self._labels_left = problem, calls, budget
        self._first, self._mask = observation, mask
        self.source, self.render_mode, self._view = None, None, None
        self.action_space = gym.spaces.Discrete(problem.n_states)
        self.observation_space = observation_space(problem.n_states, list(observation))  # type: ignore[assignment]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Return the first observation of the episode, and its info."""
        info = {
            "states": self.problem.states.copy(),
            "action_mask": self._mask.astype(np.int8),
            "budget": self.budget,
            "initial": np.empty(0, np.int64),
            "initial_revealed": {},
        }
        return {name: values.copy() for name, values in self._first.items()}, info

    def step(self, action: Any) -> Any:
        """Raise: a label is revealed only in the episode that is scored."""
        raise BenchmarkError(ONLY_EVALUATOR)

    def label_many(self, actions: Any) -> Any:
        """Raise, like `step`."""
        return self.step(actions)

    def action_masks(self) -> BoolArray:
        """Return the mask [n] of states that can be labelled."""
        return self._mask.astype(np.bool_)

    def twin(self) -> RewardSelectionEnv:
        """Raise: there are no episodes to play."""
        raise BenchmarkError(ONLY_EVALUATOR)

    def view(self) -> Any:
        """Raise: `Agent.begin` receives the view."""
        raise BenchmarkError(ONLY_EVALUATOR)

    @property
    def labelled_at(self) -> Any:
        """[n] zeros: nothing is labelled before the episode."""
        return np.zeros(self.problem.n_states, np.int64)

    @property
    def budget(self) -> int:
        """Number of labels of the episode."""
        return self._labels_left

    @property
    def labels_spent(self) -> int:
        """Number of labels spent: 0."""
        return 0
