"""RewardSelectionEnv: the Gymnasium face of a SelectionProblem."""

import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from selectenv.checks import as_array, check_name, check_real, is_int
from selectenv.errors import (
    ActionError,
    BudgetError,
    EpisodeError,
    NoEvaluatorError,
    OptionError,
    PhaseError,
    SelectEnvError,
)
from selectenv.evaluation.evaluator import Calls
from selectenv.observation import OCCUPANCIES, data_features, learned_features
from selectenv.problem import SelectionProblem
from selectenv.typing import BoolArray, Float32Array, IntArray

Observation = dict[str, Float32Array]
ProblemSource = Callable[[np.random.Generator], SelectionProblem]
REWARD_MODES = ("final", "marginal")
PHASES = ("train", "test")
FEATURE_BOUNDS = {
    "labelled": (0, 1),
    "visitation": (0, 1),
    "on_policy_visitation": (0, 1),
    "value": (-1, 1),
    "predecessors": (0, 1),
    "termination": (0, 1),
}


def number_of_labels(
    budget: Any, n: int, name: str = "budget", error: type[SelectEnvError] = BudgetError, most: float | None = None
) -> int:
    """Return the labels that a budget buys: an int is a number of labels, a float a share of n.

    Args:
        budget: the number or the share.
        n: number of states.
        name: what to call the budget in errors.
        error: which error to raise.
        most: the largest number allowed, n if left out.

    Raises:
        SelectEnvError: of the kind ``error``: neither an int from 1 to n nor a float in (0, 1].
    """
    most = n if most is None else most
    allowed = f"allowed: an int from 1 to {most} (labels) or a float above 0 and up to 1 (share of {n} states)"
    if is_int(budget):
        if not 1 <= budget <= most:
            raise error(f"{name}={budget} labels is out of range; {allowed}")
        return int(budget)
    if not isinstance(budget, float | np.floating):
        raise error(f"{name}={budget!r} is no number; {allowed}")
    if not 0 < budget <= 1:
        hint = f" Did you mean the int {int(budget)}?" if math.isfinite(budget) and 1 < budget <= most else ""
        raise error(f"{name}={budget} as a share is out of range; {allowed}.{hint}")
    return max(1, math.floor(float(budget) * n + 1e-9))


class RewardSelectionEnv(gym.Env[Any, Any]):
    """Each step labels one state; the return is the performance of the policy learned from the labels.

    Args:
        problem: a problem, or a function of a generator that makes one: it is called at every reset.
        budget: number of labels (int) or share of the states (float); a pair of shares is drawn between at every reset.
        reward_mode: "final" pays the performance at the last step, "marginal" its change at every step.
        phase: "train" exposes the evaluator at `env.unwrapped.problem`, "test" refuses it until the episode has ended.
        initial_ratio: share of all states that is labelled at random at reset, out of the budget.
        labels_per_refit: refit the learner every so many labels (int), or every so large a share of the states (float).
        occupancy: "normalised", or "published": how `on_policy_visitation` treats tied actions.
        render_mode: "ansi" or "rgb_array".
    """

    metadata = {  # noqa: RUF012 - Gymnasium declares it so
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 2,
    }

    def __init__(
        self,
        problem: SelectionProblem | ProblemSource,
        budget: float | tuple[float, float] = 0.3,
        *,
        reward_mode: str = "final",
        phase: str = "train",
        initial_ratio: float = 0.0,
        labels_per_refit: float = 1,
        occupancy: str = "normalised",
        render_mode: str | None = None,
    ) -> None:
        """See the class."""
        check_name("reward_mode", reward_mode, REWARD_MODES)
        check_name("phase", phase, PHASES)
        if phase == "test" and reward_mode != "final":
            raise PhaseError(
                'the test phase allows only reward_mode="final": marginal rewards tell what the evaluator knows'
            )
        if render_mode is not None:
            check_name("render_mode", render_mode, self.metadata["render_modes"])
        self.render_mode = render_mode
        self.marginal, self._test = reward_mode == "marginal", phase == "test"
        self._options: dict[str, Any] = {
            "budget": budget, "reward_mode": reward_mode, "phase": phase, "initial_ratio": initial_ratio,
            "labels_per_refit": labels_per_refit, "occupancy": occupancy, "render_mode": render_mode,
        }  # fmt: skip
        self._occupancy = check_name("occupancy", occupancy, OCCUPANCIES)
        if not isinstance(problem, SelectionProblem) and not callable(problem):
            raise OptionError(f"the problem must be a SelectionProblem or a function that makes one, not {problem!r}")
        self._source = None if isinstance(problem, SelectionProblem) else problem
        self.calls = Calls()
        first = problem if isinstance(problem, SelectionProblem) else problem(np.random.default_rng(0))
        self._adopt(first)
        n = first.n_states
        self._given = budget
        self.budget = self._labels(None)
        self._refit_every = number_of_labels(labels_per_refit, n, "labels_per_refit", OptionError, math.inf)
        self._initial_ratio = check_real("initial_ratio", initial_ratio, "[0, 1]")
        self._initial = self._initial_count()
        spaces = {name: gym.spaces.Box(low, high, (n,), np.float32) for name, (low, high) in FEATURE_BOUNDS.items()}
        self.observation_space = gym.spaces.Dict({**spaces, "budget": gym.spaces.Box(0, 1, (1,), np.float32)})
        self.action_space = gym.spaces.Discrete(n)
        self.labelled_at = np.zeros(n, np.int64)
        """[n] which label of the episode a state got, counted from 1; 0 if it has none."""
        self.labels_spent, self._since_refit = self.budget, 0  # nothing may be labelled before reset

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode: no labels but the initial random ones.

        Returns:
            The observation, and an info with `states` (the ids), `action_mask`, `budget` and `initial` (the numbers of
            the states labelled at random).
        """
        super().reset(seed=seed)
        if self._source is not None:
            self._adopt(self._source(self.np_random))
        if self._source is not None or isinstance(self._given, tuple):
            self.budget = self._labels(self.np_random)
            self._initial = self._initial_count()
        self.problem.evaluator.locked = self._test
        self.labelled_at[:] = 0
        open_states = np.flatnonzero(self.problem.dataset.labelable)
        initial = self.np_random.permutation(open_states)[: self._initial]
        self.labelled_at[initial] = np.arange(1, len(initial) + 1)
        self._initial_labels = initial
        self.labels_spent, self._since_refit = self._initial, 0
        self._scale = 0.0
        self._value: float | None = None
        self._refit()
        info = {
            "states": self.problem.states.copy(),
            "action_mask": self._open.astype(np.int8),
            "budget": self.budget,
            "initial": initial.copy(),
        }
        return self._observation(), info

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Label the state with number ``action``; an array of numbers labels them all, see `label_many`.

        Returns:
            Observation, reward, terminated, truncated (never), and an info with `state` (the id), `wasted` (whether the
            label taught nothing), `action_mask` and, at the end, `performance`.
        """
        if isinstance(action, np.ndarray) and action.ndim > 0:
            return self.label_many(action)
        number = self._check_action(action)
        self._check_running()
        wasted = not self._open[number]
        self.labels_spent += 1
        if not wasted:
            self.labelled_at[number] = self.labels_spent
        observation, reward, over, info = self._after_labelling(1, wasted)
        info["state"] = self.problem.states[number]
        info["wasted"] = wasted
        return observation, reward, over, False, info

    def label_many(self, actions: NDArray[Any]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Label several states in one go, as so many steps would, with one refit and one observation at the end.

        Labels beyond the budget are not made. ``info["wasted"]`` counts the wasted ones.
        """
        numbers = as_array("a batch of labels", actions, ActionError)
        n = len(self.labelled_at)
        if numbers.dtype.kind not in "iu" or numbers.ndim != 1 or len(numbers) == 0:
            raise ActionError(f"a batch of labels must be a non-empty list of state numbers, not {actions!r}")
        if numbers.min() < 0 or numbers.max() >= n:
            raise ActionError(f"state numbers must lie in 0..{n - 1}; got {numbers.min()}..{numbers.max()}")
        self._check_running()
        numbers = numbers[: self.budget - self.labels_spent]
        first_time = np.zeros(len(numbers), bool)
        first_time[np.unique(numbers, return_index=True)[1]] = True
        fresh = first_time & self._open[numbers]
        self.labelled_at[numbers[fresh]] = self.labels_spent + 1 + np.flatnonzero(fresh)
        self.labels_spent += len(numbers)
        observation, reward, over, info = self._after_labelling(len(numbers), not fresh.any())
        info["state"] = self.problem.states[numbers]
        info["wasted"] = int((~fresh).sum())
        return observation, reward, over, False, info

    def action_masks(self) -> BoolArray:
        """Return which states [n] can still be labelled usefully."""
        return self._open

    def twin(self) -> "RewardSelectionEnv":
        """Return another environment of the same problem and options, with counts of its own."""
        return RewardSelectionEnv(self._source or self.problem, **self._options)

    @property
    def labels(self) -> IntArray:
        """The numbers of the labelled states, in the order they were labelled."""
        chosen = np.flatnonzero(self.labelled_at)
        return chosen[np.argsort(self.labelled_at[chosen])]

    def render(self) -> Any:
        """Draw the labels, in the order they came, over the world's own layout."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode: give one to gym.make, e.g. render_mode='ansi'")
            return None
        from selectenv.rendering import selection

        draw = selection.text if self.render_mode == "ansi" else selection.pixels
        return draw(self.problem, self.labelled_at, self.budget)

    @property
    def labels_to_refit(self) -> int:
        """How many labels are made until the learned features change."""
        return self._refit_every - self._since_refit

    @property
    def _open(self) -> BoolArray:
        open_states: BoolArray = (self.labelled_at == 0) & self.problem.dataset.labelable
        return open_states

    def _labels(self, rng: np.random.Generator | None) -> int:
        """Return the labels of an episode: those of the largest share, or of one drawn from ``rng``."""
        given, counted = self._given, self.problem.counted
        if self._source is not None and is_int(given):  # a small world takes as many as it has
            return min(number_of_labels(given, self.problem.n_states), counted)
        if not isinstance(given, tuple):
            return number_of_labels(given, counted)
        if len(given) != 2 or not all(isinstance(share, float) for share in given) or not 0 < given[0] <= given[1] <= 1:
            raise BudgetError(f"a budget of two shares must be (low, high) with 0 < low <= high <= 1, not {given!r}")
        return number_of_labels(given[1] if rng is None else float(rng.uniform(*given)), counted)

    def _initial_count(self) -> int:
        """Return how many labels are made at random at reset."""
        initial = math.floor(self._initial_ratio * self.problem.counted + 1e-9)
        if self._source is not None:
            return min(initial, self.budget - 1)
        if initial >= self.budget:
            raise BudgetError(
                f"initial_ratio={self._initial_ratio} spends {initial} labels at reset; the budget is {self.budget}, "
                "and at least one must be left to choose"
            )
        return initial

    def _adopt(self, problem: SelectionProblem) -> None:
        """Make ``problem`` the one that is played, counted and locked for this environment alone."""
        if not isinstance(problem, SelectionProblem):
            raise OptionError(f"a problem source must return a SelectionProblem, not {problem!r}")
        if hasattr(self, "labelled_at") and problem.n_states != len(self.labelled_at):
            raise OptionError(
                f"a problem source must keep the number of states, {len(self.labelled_at)}: it made {problem.n_states}"
            )
        if self.marginal and not problem.has_performance:
            raise NoEvaluatorError("marginal rewards need an evaluator and rewards: this problem lacks one of them")
        self.problem = problem.view(self.calls)
        self.problem.evaluator.locked = self._test
        self._features = data_features(self.problem)

    def _check_action(self, action: Any) -> int:
        n = len(self.labelled_at)
        if isinstance(action, np.ndarray) and action.shape == () and action.dtype.kind in "iu":
            action = action.item()
        if not is_int(action):
            raise ActionError(f"an action is the number of a state, an int from 0 to {n - 1}, not {action!r}")
        if not 0 <= action < n:
            raise ActionError(
                f"there is no state number {action}: they lie in 0..{n - 1}; for ids use `problem.actions(ids)`"
            )
        return int(action)

    def _check_running(self) -> None:
        if self.labels_spent >= self.budget:
            raise EpisodeError("no episode is running: call reset() before the first step and after the last label")

    def _after_labelling(self, labels: int, wasted: bool) -> tuple[Observation, float, bool, dict[str, Any]]:
        """Refit where it is due, pay, and observe."""
        over = self.labels_spent == self.budget
        self._stale |= not wasted
        self._since_refit += labels
        if self._since_refit >= self._refit_every:
            self._since_refit %= self._refit_every
            if self._stale:
                self._refit()
        info: dict[str, Any] = {"action_mask": self._open.astype(np.int8), "initial": self._initial_labels.copy()}
        reward = 0.0
        if over:
            self.problem.evaluator.locked = False
        if self.marginal or (over and self.problem.has_performance):
            before = 0.0 if self._value is None else self._value
            if self._value is None or not wasted or not self.marginal:
                measure = self.problem.score if over else self.problem.performance
                self._value = measure(self.labelled_at > 0)
            reward = self._value - before
            if over:
                info["performance"] = self._value
        return self._observation(), reward, over, info

    def _refit(self) -> None:
        """Learn from the labels so far and renew the features that follow."""
        learned, self._scale = learned_features(self.problem, self.labelled_at > 0, self._scale, self._occupancy)
        self._features.update(learned)
        self._stale = False

    def _observation(self) -> Observation:
        """Return arrays of the caller's own: Gymnasium's checkers refuse observations that share memory."""
        features = {name: feature.copy() for name, feature in self._features.items()}
        features["labelled"] = (self.labelled_at / self.budget).astype(np.float32)
        features["budget"] = np.array([1 - self.labels_spent / self.budget], np.float32)
        return features
