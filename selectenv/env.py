"""RewardSelectionEnv: a SelectionProblem as a Gymnasium environment."""

import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from selectenv.budget import episode_labels, number_of_labels
from selectenv.checks import as_array, check_callable, check_instance, is_int, shown
from selectenv.errors import ActionError, BudgetError, EpisodeError, NoEvaluatorError, OptionError, OptionTypeError
from selectenv.evaluation.evaluator import Calls
from selectenv.observation import FEATURE_BOUNDS, Observation, data_features, learned_features
from selectenv.options import RENDER_MODES, EnvironmentOptions, names, own_options
from selectenv.problem import SelectionProblem
from selectenv.typing import BoolArray, IntArray
from selectenv.view import SelectionView

ProblemSource = Callable[[np.random.Generator], SelectionProblem]
Action = int | np.integer[Any] | NDArray[np.integer[Any]]
"""A state number, or an array of state numbers."""


class RewardSelectionEnv(gym.Env[Observation, Action]):
    """Each step labels one state; the return is the performance of the policy learned from the labels.

    Args:
        problem: a problem, or a function of a random generator that makes one: it is called at every reset.
        budget: number of labels (int) or share of the states (float); for a (low, high) pair of shares, every reset
            draws a share uniformly between them.
        **options: the other fields of `EnvironmentOptions`.
    """

    metadata = {  # noqa: RUF012 - Gymnasium declares it so
        "render_modes": list(RENDER_MODES),
        "render_fps": 2,
    }

    def __init__(self, problem: SelectionProblem | ProblemSource, budget: Any = 0.3, **options: Any) -> None:
        """See the class."""
        self.options = _environment_options(budget, options)
        self.render_mode = self.options.render_mode
        self.marginal, self._test = self.options.reward_mode == "marginal", self.options.phase == "test"
        self._source: ProblemSource | None = None
        self.calls = Calls()
        if isinstance(problem, SelectionProblem):
            first = problem
        elif callable(problem):
            self._source = check_callable("a problem source", problem, "rng")
            first = self._source(np.random.default_rng(0))
        else:
            raise OptionTypeError(
                f"problem must be a SelectionProblem or a function that makes one, not {shown(problem)}"
            )
        self._adopt(first)
        n = first.n_states
        self.budget = self._labels(None)
        refit = 1 if self.options.labels_per_refit is None else self.options.labels_per_refit
        self._refit_every = number_of_labels(refit, n, "labels_per_refit", OptionError, math.inf)
        self._initial = self._initial_count()
        spaces = {name: gym.spaces.Box(low, high, (n,), np.float32) for name, (low, high) in FEATURE_BOUNDS.items()}
        self.observation_space = gym.spaces.Dict(  # type: ignore[assignment]  # Gymnasium's Dict holds Any
            {**spaces, "budget": gym.spaces.Box(0, 1, (1,), np.float32)}
        )
        self.action_space = gym.spaces.Discrete(n)
        self.labelled_at = np.zeros(n, np.int64)
        """[n] when each state was labelled in the episode, counted from 1; 0 if it is not labelled."""
        self.labels_spent, self._since_refit = self.budget, 0  # nothing may be labelled before reset
        self._initial_labels = np.empty(0, np.int64)
        self._view: SelectionView | None = None
        self._begun = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode without labels other than the initial random ones.

        Returns:
            The observation, and an info with `states` (the ids), `action_mask`, `budget` and `initial` (the numbers of
            the states labelled at random).
        """
        super().reset(seed=seed)
        if self._source is not None:
            self._adopt(self._source(self.np_random))
        if self._source is not None or isinstance(self.options.budget, tuple):
            self.budget = self._labels(self.np_random)
            self._initial = self._initial_count()
        self.problem.evaluator.locked = self._test
        self.labelled_at[:] = 0
        open_states = np.flatnonzero(self.problem.dataset.labelable)
        initial = self.np_random.permutation(open_states)[: self._initial]
        self.labelled_at[initial] = np.arange(1, len(initial) + 1)
        self._initial_labels, self._begun = initial, True
        self.labels_spent, self._since_refit = self._initial, 0
        self._scale = 0.0
        self._value: float | None = None
        self._view = None
        self._refit()
        info = {
            "states": self.problem.states.copy(),
            "action_mask": self._open.astype(np.int8),
            "budget": self.budget,
            "initial": initial.copy(),
        }
        return self._observation(), info

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Label the state with number ``action``; an array of numbers labels them all, see `label_many`.

        Returns:
            Observation, reward, terminated, truncated (never), and an info with `state` (the id), `wasted` (whether the
            state was labelled before or never occurs in the data), `action_mask`, `initial` and, at the end,
            `performance`.
        """
        if isinstance(action, np.ndarray) and action.ndim > 0:
            return self.label_many(action)
        number = self._check_action(action)
        self._check_running()
        wasted = not self._open[number]
        self.labels_spent += 1
        if not wasted:
            self.labelled_at[number] = self.labels_spent
            if self._view is not None:
                self._reveal(np.array([number]))
        observation, reward, over, info = self._after_labelling(1, wasted)
        info["state"] = self.problem.states[number]
        info["wasted"] = wasted
        return observation, reward, over, False, info

    def label_many(self, actions: NDArray[Any]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Label several states at once, as single steps would, with one refit and one observation at the end.

        Labels beyond the budget are ignored. The result is that of `step`, but ``info["state"]`` is an array of ids and
        ``info["wasted"]`` the number of wasted labels.
        """
        numbers = as_array("a batch of labels", actions, ActionError)
        n = len(self.labelled_at)
        if numbers.dtype.kind not in "iu" or numbers.ndim != 1 or len(numbers) == 0:
            raise ActionError(f"a batch of labels must be a non-empty list of state numbers, not {shown(actions)}")
        if numbers.min() < 0 or numbers.max() >= n:
            raise ActionError(f"state numbers must lie in 0..{n - 1}; got {numbers.min()}..{numbers.max()}")
        self._check_running()
        numbers = numbers[: self.budget - self.labels_spent]
        first_time = np.zeros(len(numbers), bool)
        first_time[np.unique(numbers, return_index=True)[1]] = True
        fresh = first_time & self._open[numbers]
        self.labelled_at[numbers[fresh]] = self.labels_spent + 1 + np.flatnonzero(fresh)
        self._reveal(numbers[fresh])
        self.labels_spent += len(numbers)
        observation, reward, over, info = self._after_labelling(len(numbers), not fresh.any())
        info["state"] = self.problem.states[numbers]
        info["wasted"] = int((~fresh).sum())
        return observation, reward, over, False, info

    def action_masks(self) -> BoolArray:
        """Return the mask [n] of states that can still be labelled."""
        return self._open

    def twin(self) -> "RewardSelectionEnv":
        """Return another environment of the same problem and options, with call counts of its own."""
        return RewardSelectionEnv(self._source or self.problem, **vars(self.options))

    def view(self) -> SelectionView:
        """Return what a strategy may know in the running episode; it is updated as states are labelled.

        Raises:
            EpisodeError: no episode has begun.
        """
        if not self._begun:
            raise EpisodeError("no episode has begun: call reset() first")
        if self._view is None:
            self._view = SelectionView(
                self.problem.dataset,
                rule=self.problem.learner.rule,
                gamma=self.problem.learner.gamma,
                budget=self.budget,
                initial=self._initial_labels.copy(),
            )
            self._reveal(np.flatnonzero(self.labelled_at))
        return self._view

    @property
    def labels(self) -> IntArray:
        """The numbers of the labelled states, in the order they were labelled."""
        chosen = np.flatnonzero(self.labelled_at)
        return chosen[np.argsort(self.labelled_at[chosen])]

    def render(self) -> Any:
        """Return a drawing of the labels, numbered in order, on the world's layout: text or an RGB image."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode: give one to gym.make, e.g. render_mode='ansi'")
            return None
        from selectenv.rendering import selection

        draw = selection.text if self.render_mode == "ansi" else selection.pixels
        return draw(self.problem, self.labelled_at, self.budget)

    @property
    def labels_to_refit(self) -> int:
        """Number of labels until the next refit, which changes the learned features."""
        return self._refit_every - self._since_refit

    @property
    def _open(self) -> BoolArray:
        open_states: BoolArray = (self.labelled_at == 0) & self.problem.dataset.labelable
        return open_states

    def _labels(self, rng: np.random.Generator | None) -> int:
        """Return the number of labels of an episode, drawn from ``rng`` where the budget is a range."""
        given, basis = self.options.budget, self.problem.budget_states
        if self._source is not None and is_int(given):  # a small world takes as many labels as it has states
            return min(number_of_labels(given, self.problem.n_states), basis)
        return episode_labels(given, basis, rng)

    def _reveal(self, states: IntArray) -> None:
        """Add the rewards of newly labelled states to the view, if `view` was called in this episode."""
        if self._view is not None:
            self._view.add(*self.problem.dataset.revealed_by(states))

    def _initial_count(self) -> int:
        """Return how many states are labelled at random at reset."""
        initial = math.floor(float(self.options.initial_ratio) * self.problem.budget_states + 1e-9)
        if self._source is not None:
            return min(initial, self.budget - 1)
        if initial >= self.budget:
            raise BudgetError(
                f"initial_ratio={self.options.initial_ratio} spends {initial} labels at reset; the budget is "
                f"{self.budget}, and at least one must be left to choose"
            )
        return initial

    def _adopt(self, problem: SelectionProblem) -> None:
        """Switch to ``problem``, with the call counts and the lock of this environment."""
        check_instance("the problem that a problem source returns", problem, SelectionProblem)
        if hasattr(self, "labelled_at") and problem.n_states != len(self.labelled_at):
            raise OptionError(
                f"a problem source must keep the number of states, {len(self.labelled_at)}: it made {problem.n_states}"
            )
        if self.marginal and not problem.has_performance:
            raise NoEvaluatorError("marginal rewards need an evaluator and rewards: this problem lacks one of them")
        self.problem = problem.with_calls(self.calls)
        self.problem.evaluator.locked = self._test
        self._features = data_features(self.problem)

    def _check_action(self, action: Any) -> int:
        n = len(self.labelled_at)
        if isinstance(action, np.ndarray) and action.shape == () and action.dtype.kind in "iu":
            action = action.item()
        if not is_int(action):
            raise ActionError(f"an action is the number of a state, an int from 0 to {n - 1}, not {shown(action)}")
        if not 0 <= action < n:
            raise ActionError(
                f"there is no state number {shown(action)}: they lie in 0..{n - 1}; for ids use `problem.actions(ids)`"
            )
        return int(action)

    def _check_running(self) -> None:
        if self.labels_spent >= self.budget:
            raise EpisodeError("no episode is running: call reset() before the first step and after the last label")

    def _after_labelling(self, labels: int, wasted: bool) -> tuple[Observation, float, bool, dict[str, Any]]:
        """Refit if it is due, and return observation, reward, whether the episode is over, and info."""
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
        """Learn from the labels so far and update the features that depend on them."""
        learned, self._scale = learned_features(self.problem, self.labelled_at > 0, self._scale, self.options.occupancy)
        self._features.update(learned)
        self._stale = False

    def _observation(self) -> Observation:
        """Return fresh arrays: Gymnasium's checkers reject observations that share memory."""
        features = {name: feature.copy() for name, feature in self._features.items()}
        features["labelled"] = (self.labelled_at / self.budget).astype(np.float32)
        features["budget"] = np.array([1 - self.labels_spent / self.budget], np.float32)
        return features


def _environment_options(budget: Any, options: dict[str, Any]) -> EnvironmentOptions:
    """Return the options of an environment.

    Raises:
        UnknownNameError: there is no such option; the message names the nearest one.
    """
    own_options(options, (), names(EnvironmentOptions))
    return EnvironmentOptions(budget, **options)
