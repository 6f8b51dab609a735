"""Choice of the next queries: the strategy sees what it would see in an episode of the environment."""

import json
import math
from typing import Any, NamedTuple

import numpy as np

from selectenv.checks import as_ints
from selectenv.errors import StrategyError
from selectenv.labelling.session_settings import SessionSettings
from selectenv.labelling.strategy import Strategy
from selectenv.labelling.told_problem import ToldProblem
from selectenv.observation import Observation, data_features, learned_features, reward_features, usual_exploit
from selectenv.options import FEATURES
from selectenv.streams import generator
from selectenv.typing import BoolArray, FloatArray, IntArray
from selectenv.view import SelectionView, learner_terms


class ChoiceState(NamedTuple):
    """What one choice passes on to the next, besides the queries and their answers."""

    rng: dict[str, Any] | None = None
    """State of the strategy's random generator; None before the first choice."""
    scale: float = 0.0
    """Largest magnitude of a learned value so far."""
    last: int = 0
    """Number of queries of the last choice."""

    def as_text(self) -> str:
        """Return the state as JSON text."""
        return json.dumps(self._asdict())


class NextQueries:
    """Chooses states as `agents.play` does in an environment with the same data, strategy and seed.

    A state that was chosen and has no answer yet counts as a label that revealed nothing.
    """

    def __init__(self, problem: ToldProblem, strategy: Strategy, settings: SessionSettings) -> None:
        """Begin without answers.

        Args:
            problem: the problem, to which answers are told.
            strategy: the agent.
            settings: the settings of the session.
        """
        self.problem, self.strategy, self.settings = problem, strategy, settings
        self._data_features, self._exploit = data_features(problem), usual_exploit(problem)
        self._view = SelectionView(
            problem.dataset,
            **learner_terms(problem.learner),
            budget=settings.budget,
            initial=np.empty(0, np.int64),
            exploit=self._exploit,
            labels_per_refit=settings.labels_per_refit,
        )
        strategy.begin(self._view)

    def tell(self, number: int, rewards: FloatArray | None) -> None:
        """Add the rewards of a state, one per distinct transition; None takes them back."""
        self._view.add(*self.problem.tell(number, rewards))

    def choose(
        self, asked: IntArray, wanted: int, before: ChoiceState, skipped: BoolArray
    ) -> tuple[IntArray, ChoiceState]:
        """Return the next states to ask about.

        Args:
            asked: numbers of the states chosen so far, in order.
            wanted: how many queries are needed now; more are chosen if the strategy chooses several at a time.
            before: what the last choice passed on.
            skipped: [asked] which of them were skipped: the strategy chooses as if it had not chosen them, but it
                cannot choose them again.

        Returns:
            The state numbers, and what this choice passes on to the next.

        Raises:
            StrategyError: the strategy chose a state that cannot be asked about.
        """
        rng = generator(self.settings.seed, "selection", self.strategy.name)
        if before.rng is not None:
            rng.bit_generator.state = before.rng
        chosen = asked[~skipped]
        left, refit_every = self.settings.budget - len(chosen), self.settings.labels_per_refit
        between_refits = 1 if self.strategy.one_at_a_time else refit_every - len(chosen) % refit_every
        k = left if self.strategy.taxonomy.test_loop == "open" else min(left, max(wanted, between_refits))
        latest = asked[len(asked) - before.last :][~skipped[len(asked) - before.last :]]
        obs, info, scale = self._observe(chosen, latest, before.scale)
        info["action_mask"][asked[skipped]] = 0
        k = min(k, int(info["action_mask"].sum()))
        found: Any = self.strategy.select_many(obs, info, k, rng) if k > 1 else [self.strategy.select(obs, info, rng)]
        numbers = as_ints(f"the choice of {self.strategy.name}", found, StrategyError)
        free = info["action_mask"]
        if (
            numbers.shape != (k,)
            or len(set(numbers.tolist())) < k
            or not all(0 <= number < len(free) and free[number] for number in numbers.tolist())
        ):
            raise StrategyError(
                f"{self.strategy.name} must choose {k} different states that occur in the data and have not been "
                f"chosen before; it chose {numbers.tolist()}"
            )
        return numbers, ChoiceState(rng.bit_generator.state, scale, k)  # type: ignore[arg-type]  # a dict of ints

    def _observe(self, chosen: IntArray, latest: IntArray, scale: float) -> tuple[Observation, dict[str, Any], float]:
        """Return the observation and the info that the environment would return, and the scale of the values."""
        problem, budget, refit_every = self.problem, self.settings.budget, self.settings.labels_per_refit
        labelled_at = np.zeros(problem.n_states, np.int64)
        labelled_at[chosen] = np.arange(1, len(chosen) + 1)
        fitted = np.zeros(problem.n_states, bool)
        fitted[chosen[: len(chosen) // refit_every * refit_every]] = True
        result = problem.learn(fitted & problem.revealable)
        occupancy = self.settings.occupancy
        learned, scale = learned_features(problem, result, fitted, scale, occupancy, self._exploit)
        summary = problem.dataset.reward_summary(problem.rewards)
        obs = {**{name: feature.copy() for name, feature in self._data_features.items()}, **learned}
        obs["labelled"] = (labelled_at / budget).astype(np.float32)
        obs |= reward_features(summary.mean, float(summary.largest_magnitude.max()))
        obs["budget"] = np.array([1 - len(chosen) / budget], np.float32)
        mask = (labelled_at == 0) & problem.dataset.labelable
        info: dict[str, Any] = {
            "states": problem.states.copy(),
            "action_mask": mask.astype(np.int8),
            "budget": budget,
            "initial": np.empty(0, np.int64),
            "initial_revealed": {},
        }
        if len(latest):
            revealed = {
                number: {a: mean for a, mean in enumerate(summary.by_action[number].tolist()) if not math.isnan(mean)}
                for number in latest.tolist()
            }
            one = len(latest) == 1
            info["state"] = problem.states[latest[0]] if one else problem.states[latest]
            info["wasted"] = False if one else 0
            info["revealed"] = revealed[int(latest[0])] if one else revealed
        return {name: obs[name] for name in FEATURES}, info, scale
