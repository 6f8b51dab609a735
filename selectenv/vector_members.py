"""VectorMember: one environment of a vector, as `call`, `get_attr` and `set_attr` see it."""

from dataclasses import replace
from typing import Any, Protocol

import gymnasium as gym
import numpy as np

from selectenv.checks import did_you_mean, shown
from selectenv.env import RewardSelectionEnv, in_order
from selectenv.episode_terms import ProblemSource
from selectenv.errors import MemberError, OptionError
from selectenv.evaluation.evaluator import Calls
from selectenv.kernels.tabular.packed_tables import BUDGET, JUDGED, SINCE_REFIT, SPENT, Episodes
from selectenv.options import EnvironmentOptions
from selectenv.problem import SelectionProblem
from selectenv.typing import BoolArray, IntArray
from selectenv.view import SelectionView

VECTOR_OPTIONS = ("num_envs", "vectorization_mode", "autoreset_mode")
"""Options of `gym.make_vec` that a single environment does not have."""


class _Vector(Protocol):
    """What a member uses of its `RewardSelectionVectorEnv`."""

    options: EnvironmentOptions
    episodes: Episodes
    source: ProblemSource | None
    refit_every: int
    render_mode: str | None
    single_observation_space: gym.Space[Any]
    single_action_space: gym.Space[Any]
    metadata: dict[str, Any]
    spec: Any

    @property
    def calls(self) -> tuple[Calls, ...]: ...

    @property
    def np_random(self) -> Any: ...

    @property
    def np_random_seed(self) -> Any: ...

    def problem_of(self, number: int) -> SelectionProblem: ...

    def view_of(self, number: int) -> SelectionView: ...

    def render_one(self, number: int) -> Any: ...

    def action_masks(self) -> BoolArray: ...


class VectorMember:
    """What `RewardSelectionEnv` offers, for one environment of a vector; all of them take their steps together."""

    def __init__(self, vector: _Vector, number: int) -> None:
        """Refer to environment ``number`` of ``vector``."""
        self._vector, self._number = vector, number

    def __getattr__(self, name: str) -> Any:
        """Raise an error that explains why an attribute is missing."""
        if name in ("reset", "step", "label_many", "close"):
            raise MemberError(f"the environments of a vector take their steps together: use `envs.{name}`")
        public = [one for one in dir(type(self)) if one[0] != "_"]
        raise MemberError(f"the environments of a vector have no attribute {shown(name)}; {did_you_mean(name, public)}")

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute that the vector does not manage."""
        if name[:1] != "_" and hasattr(type(self), name):
            raise OptionError(f"{name} cannot be set: the vector environment manages it")
        super().__setattr__(name, value)

    @property
    def problem(self) -> SelectionProblem:
        """The problem of the running episode, with the calls and the lock of this environment."""
        return self._vector.problem_of(self._number)

    @property
    def calls(self) -> Calls:
        """The evaluator calls of this environment; updated whenever this property is read."""
        return self._vector.calls[self._number]

    @property
    def options(self) -> EnvironmentOptions:
        """The options of all environments."""
        return self._vector.options

    @property
    def marginal(self) -> bool:
        """Whether the reward of each step is the change in performance."""
        return self._vector.options.reward_mode == "marginal"

    @property
    def budget(self) -> int:
        """Number of labels of the episode."""
        return self._count(BUDGET)

    @property
    def labels_spent(self) -> int:
        """Number of labels spent so far, initial and wasted ones included."""
        return self._count(SPENT)

    @property
    def labels_to_refit(self) -> int:
        """Number of labels until the next refit."""
        return self._vector.refit_every - self._count(SINCE_REFIT)

    @property
    def labelled_at(self) -> IntArray:
        """[n] when each state was labelled in the episode, counted from 1; 0 if it is not labelled."""
        mine: IntArray = self._vector.episodes.labelled_at[self._number]
        return mine

    @property
    def labels(self) -> IntArray:
        """The numbers of the labelled states, in the order they were labelled."""
        return in_order(self.labelled_at)

    @property
    def np_random(self) -> np.random.Generator:
        """The random generator of this environment."""
        return self._vector.np_random[self._number]  # type: ignore[no-any-return]

    @property
    def np_random_seed(self) -> int:
        """The seed of the random generator."""
        return self._vector.np_random_seed[self._number]  # type: ignore[no-any-return]

    @property
    def observation_space(self) -> gym.Space[Any]:
        """The space of the observations of one environment."""
        return self._vector.single_observation_space

    @property
    def action_space(self) -> gym.Space[Any]:
        """The space of the actions of one environment."""
        return self._vector.single_action_space

    @property
    def metadata(self) -> dict[str, Any]:
        """Render modes and autoreset mode."""
        return self._vector.metadata

    @property
    def render_mode(self) -> str | None:
        """The render mode of all environments."""
        return self._vector.render_mode

    @property
    def spec(self) -> Any:
        """The spec of this environment on its own."""
        spec = self._vector.spec
        if spec is None:
            return None
        return replace(spec, kwargs={key: value for key, value in spec.kwargs.items() if key not in VECTOR_OPTIONS})

    @property
    def unwrapped(self) -> "VectorMember":
        """This object: a vector has no wrappers inside."""
        return self

    def action_masks(self) -> BoolArray:
        """Return the mask [n] of states that can still be labelled."""
        mine: BoolArray = self._vector.action_masks()[self._number]
        return mine

    def judge(self) -> None:
        """Count the final return of the running episode as its score, not as a cost."""
        self._vector.episodes.counts[self._number, JUDGED] = 1

    def view(self) -> SelectionView:
        """Return what a strategy may know in the running episode; it is updated as states are labelled."""
        return self._vector.view_of(self._number)

    def twin(self) -> RewardSelectionEnv:
        """Return a single environment of the same problem and options, with call counts of its own."""
        return RewardSelectionEnv(self._vector.source or self.problem, **vars(self.options))

    def render(self) -> Any:
        """Return a drawing of the labels; None without a render mode."""
        return None if self.render_mode is None else self._vector.render_one(self._number)

    def _count(self, column: int) -> int:
        return int(self._vector.episodes.counts[self._number, column])
