"""What the options of an environment mean for a problem: budget, initial labels and refits of an episode."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from selectenv.budget import cap_to_labelable, episode_labels, number_of_labels
from selectenv.checks import LARGEST_INT, as_ints, check_callable, check_instance, is_int, shown
from selectenv.errors import BudgetError, LabelError, NoEvaluatorError, OptionError, OptionTypeError, PhaseError
from selectenv.observation import usual_exploit
from selectenv.options import EnvironmentOptions, names, own_options
from selectenv.problem import SelectionProblem
from selectenv.typing import IntArray
from selectenv.view import SelectionView, learner_terms

RESET_OPTIONS = ("budget", "initial")
ProblemSource = Callable[[np.random.Generator], SelectionProblem]


class EpisodeTerms:
    """The checked options of an environment, and what they mean for its problems."""

    def __init__(self, problem: SelectionProblem | ProblemSource, budget: Any, options: dict[str, Any]) -> None:
        """Check the options.

        Args:
            problem: a problem, or a function of a random generator that makes one.
            budget: see `EnvironmentOptions`.
            options: the other fields of `EnvironmentOptions`.

        Raises:
            UnknownNameError: there is no such option; the message names the nearest one.
            OptionError: the options do not suit the problem.
        """
        own_options(options, (), names(EnvironmentOptions))
        self.options = EnvironmentOptions(budget, **options)
        self.marginal, self.test = self.options.reward_mode == "marginal", self.options.phase == "test"
        self.source: ProblemSource | None = None
        """Makes the problem of every episode; None if they all have the same."""
        if isinstance(problem, SelectionProblem):
            self.first = problem
        elif callable(problem):
            self.source = check_callable("a problem source", problem, "rng")
            self.first = self.source(np.random.default_rng(0))
        else:
            raise OptionTypeError(
                f"problem must be a SelectionProblem or a function that makes one, not {shown(problem)}"
            )
        self._n: int | None = None
        self.check_problem(self.first)
        self.n_states = self._n = self.first.n_states
        self.usual_budget = self.labels(self.first, self.options.budget, None)
        refit = 1 if self.options.labels_per_refit is None else self.options.labels_per_refit
        refit_every = number_of_labels(refit, self.n_states, "labels_per_refit", OptionError, math.inf)
        self.refit_every = min(refit_every, LARGEST_INT)
        self.initial_count(self.first, self.usual_budget)  # raises now rather than at reset if no label is left

    def check_problem(self, problem: SelectionProblem) -> None:
        """Raise unless the environment can play a problem."""
        check_instance("the problem that a problem source returns", problem, SelectionProblem)
        if self._n is not None and problem.n_states != self._n:
            raise OptionError(f"a problem source must keep the number of states, {self._n}: it made {problem.n_states}")
        if self.test and problem.oracle:
            raise PhaseError(f"the test phase refuses a learner that knows {problem.oracle}")
        if self.marginal and not problem.has_performance:
            raise NoEvaluatorError("marginal rewards need an evaluator and rewards: this problem lacks one of them")

    def exploit(self, problem: SelectionProblem) -> str:
        """Return how the predecessors of a problem are found: "best" or "pooled"."""
        return self.options.exploit or usual_exploit(problem)

    def view(self, problem: SelectionProblem, budget: int, initial: IntArray, labelled: IntArray) -> SelectionView:
        """Return what a strategy may know in an episode.

        Args:
            problem: the problem of the episode.
            budget: its number of labels.
            initial: the states labelled at reset.
            labelled: the states labelled so far.
        """
        view = SelectionView(
            problem.dataset,
            **learner_terms(problem.learner),
            budget=budget,
            initial=initial.copy(),
            oracle=problem.oracle,
            exploit=self.exploit(problem),
            labels_per_refit=self.refit_every,
        )
        view.add(*problem.dataset.revealed_by(labelled))
        return view

    def labels(self, problem: SelectionProblem, budget: Any, rng: np.random.Generator | None) -> int:
        """Return the number of labels of an episode, drawn from ``rng`` where the budget is a range.

        It is at most the number of states that can be labelled; a problem source may make
        problems with fewer states than the budget, so there it is capped without a warning.
        """
        basis, open_states = problem.budget_states, int(problem.dataset.labelable.sum())
        if self.source is None:
            return cap_to_labelable(episode_labels(budget, basis, rng), open_states)
        if is_int(budget):
            return min(number_of_labels(budget, problem.n_states), open_states)
        return min(episode_labels(budget, basis, rng), open_states)

    def initial_count(self, problem: SelectionProblem, budget: int) -> int:
        """Return how many states are labelled at random at reset."""
        initial = math.floor(float(self.options.initial_ratio) * problem.budget_states + 1e-9)
        if self.source is not None:
            return min(initial, budget - 1)
        if initial >= budget:
            raise BudgetError(
                f"initial_ratio={self.options.initial_ratio} spends {initial} labels at reset; the budget is "
                f"{budget}, and at least one must be left to choose"
            )
        return initial

    def initial_states(self, problem: SelectionProblem, given: Any, budget: int) -> IntArray:
        """Return the states that a caller wants labelled at reset.

        Raises:
            LabelError: they are not numbers of distinct states that occur in the data.
            BudgetError: they leave no label to choose.
        """
        open_states = problem.dataset.labelable
        states = as_ints("initial", given, LabelError)
        n = len(open_states)
        if states.ndim != 1 or (states.size and (states.min() < 0 or states.max() >= n)):
            raise LabelError(f"initial must be a list of state numbers in 0..{n - 1}, not {shown(given)}")
        if len(np.unique(states)) < len(states) or not open_states[states].all():
            raise LabelError("initial must list different states that occur in the data")
        if len(states) >= budget:
            raise BudgetError(
                f"initial lists {len(states)} states; the budget is {budget} labels, and at least one must be "
                "left to choose"
            )
        return states

    def draws_budget(self, chosen: dict[str, Any]) -> bool:
        """Return whether the number of labels must be determined again at reset with these options."""
        return "budget" in chosen or self.source is not None or isinstance(self.options.budget, tuple)

    def begin(
        self, problem: SelectionProblem, chosen: dict[str, Any], rng: np.random.Generator
    ) -> tuple[int, IntArray]:
        """Return the budget of an episode and the states to label at reset.

        Args:
            problem: the problem of the episode.
            chosen: options of reset.
            rng: random generator of the environment.
        """
        budget = self.usual_budget
        if self.draws_budget(chosen):
            budget = self.labels(problem, chosen.get("budget", self.options.budget), rng)
        if chosen.get("initial") is not None:
            return budget, self.initial_states(problem, chosen["initial"], budget)
        drawn = rng.permutation(np.flatnonzero(problem.dataset.labelable))
        return budget, drawn[: self.initial_count(problem, budget)]
