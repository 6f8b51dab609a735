"""Strategies that search for a label set with the evaluator and then play it on any dataset of the world."""

import json
import os
from abc import abstractmethod
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from agents.base import Info, Observation, RankingAgent, only_open
from agents.errors import NotTrainedError, SavedAgentError
from selectenv.checks import as_ints, check_instance, check_int, check_path, is_int, is_real
from selectenv.env import RewardSelectionEnv
from selectenv.errors import LabelError, OptionError
from selectenv.io.atomic import whole_file
from selectenv.problem import SelectionProblem
from selectenv.typing import BoolArray, FloatArray, IntArray
from selectenv.view import SelectionView
from selectenv.wrappers.batch_labels import selection_env

FORMAT, VERSION = "selectenv-agent", 1


class SearchTask:
    """What a search works on: a problem, a budget, and initial labels."""

    def __init__(self, env: RewardSelectionEnv, seed: int) -> None:
        """Reset ``env``, so that its initial labels are those of an episode with the same seed."""
        env, seed = selection_env(env), check_int("seed", seed, 0)
        env.reset(seed=seed)
        self.env, self.seed = env, seed
        self.problem: SelectionProblem = env.problem
        self.fixed: BoolArray = env.labelled_at > 0
        self.candidates: IntArray = np.flatnonzero(env.action_masks())
        self.budget = env.budget - env.labels_spent
        """Number of labels to choose."""
        if self.budget > len(self.candidates):
            raise OptionError(
                f"the budget is {self.budget} labels, but only {len(self.candidates)} states can be labelled"
            )
        self.problem.performance_many(
            np.zeros((0, self.n_states), bool)
        )  # raises now rather than after the first round

    @property
    def n_states(self) -> int:
        """Number of all states."""
        return self.problem.n_states

    def masks(self, sets: IntArray) -> BoolArray:
        """Return the label sets [sets, n] of state numbers [sets, k], with the fixed labels."""
        sets = as_ints("sets", sets)
        if sets.ndim != 2:
            raise LabelError(f"sets must be an array of state numbers of shape [sets, k], not {sets.shape}")
        masks = np.repeat(self.fixed[None], len(sets), axis=0)
        try:
            np.put_along_axis(masks, sets, True, axis=1)
        except IndexError as error:
            raise LabelError(f"sets must hold state numbers in 0..{self.n_states - 1} ({error})") from None
        return masks

    def evaluate(self, sets: IntArray) -> FloatArray:
        """Return the performances of sets of state numbers [sets, k]."""
        return self.problem.performance_many(self.masks(sets))

    def by_visitation(self, chosen: IntArray) -> IntArray:
        """Return ``chosen`` followed by all other candidates, most visited first: a ranking for set searches."""
        rest = np.setdiff1d(self.candidates, chosen)
        return np.concatenate([chosen, rest[np.argsort(-self.problem.dataset.visitation[rest], kind="stable")]])


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found."""

    ranking: IntArray
    """Numbers of all candidates; the first ones are the chosen set, the others replace states missing elsewhere."""
    performance: float
    """Performance of the chosen set on the training data."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Details of the search, ready for JSON."""


class SearchAgent(RankingAgent):
    """Searches in `train`, then labels the states it found in order."""

    any_budget = False
    """Whether the first states of the ranking are the answer for smaller budgets too."""

    def __post_init__(self) -> None:
        """Start untrained."""
        self._memory: dict[str, Any] | None = None
        self._order: IntArray | None = None
        self._n_states = 0
        self.replaced: list[Any] = []
        """Ids that the current dataset never visits; the next states of the ranking replace them."""

    @abstractmethod
    def search(self, task: SearchTask) -> SearchResult:
        """Find a label set."""

    def train(self, env: gym.Env[Any, Any], seed: int = 0) -> None:
        """Search on ``env``'s problem for its budget, given the initial labels of an episode with this seed.

        Raises:
            PhaseError: the environment is in its test phase.
        """
        inner, seed = selection_env(env), check_int("seed", seed, 0)
        before = inner.calls.asked, inner.calls.computed
        task = SearchTask(inner, seed)
        found = self.search(task)
        dataset = inner.problem.dataset
        self.training_calls = inner.calls.asked - before[0], inner.calls.computed - before[1]
        self._memory = {
            "format": FORMAT,
            "version": VERSION,
            "agent": self.name,
            "options": asdict(self),  # type: ignore[call-overload]  # subclasses are dataclasses
            "world": dataset.spec.get("world"),
            "world_fingerprint": dataset.spec.get("world_fingerprint"),
            "budget": task.budget,
            "ranking": dataset.ids[found.ranking].tolist(),
            "performance": found.performance,
            "calls": list(self.training_calls),
            "notes": found.notes,
        }
        self.search_notes = found.notes

    @property
    def memory(self) -> dict[str, Any]:
        """What was learned, ready for JSON: options, world, budget, ranking (ids), performance, calls, notes."""
        if self._memory is None:
            raise NotTrainedError(
                f"{self.name} has nothing learned yet: call agent.train(env) first, or load a saved one"
            )
        return self._memory

    def begin(self, view: SelectionView) -> None:
        """Translate the ids that were found into the state numbers of this dataset.

        Raises:
            NotTrainedError: nothing was learned yet.
            SavedAgentError: the ranking belongs to another world or budget.
        """
        check_instance("view", view, SelectionView)
        memory, dataset = self.memory, view.dataset
        ranking = memory["ranking"]
        numbers = {state: i for i, state in enumerate(dataset.ids.tolist())}
        known = [numbers[state] for state in ranking if state in numbers]
        theirs, here = memory["world_fingerprint"], dataset.spec.get("world_fingerprint")
        if (theirs and here and theirs != here) or not known:
            world = dataset.spec.get("world") or "these data"
            raise SavedAgentError(f"{self.name} was trained on {memory['world'] or 'other data'}, not on {world}")
        wanted = view.labels_to_choose
        if wanted != memory["budget"] and not (self.any_budget and wanted < memory["budget"]):
            raise SavedAgentError(f"{self.name} was trained for {memory['budget']} labels, not for {wanted}")
        seen = {state for state, i in numbers.items() if dataset.labelable[i]}
        self.replaced = [state for state in ranking[:wanted] if state not in seen]
        self._order, self._n_states = np.array(known, np.int64), dataset.n_states

    def scores(self, obs: Observation, info: Info) -> FloatArray:
        """Return the place of each state in the ranking, the first highest; states it does not know come last."""
        if self._order is None:
            raise NotTrainedError(
                f"{self.name} does not know this dataset yet: call agent.begin(env.unwrapped.view()) after reset"
            )
        scores = np.full(self._n_states, -float(len(self._order)))
        scores[self._order] = -np.arange(len(self._order))
        return only_open(scores, info)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write what was learned as JSON; the file is there whole or not at all."""
        text = json.dumps(self.memory, indent=1)
        with whole_file(path) as file:
            file.write(text.encode())
        return Path(path)

    def remember(self, memory: dict[str, Any]) -> None:
        """Take over what an agent of this kind has saved."""
        asked, computed = memory["calls"]
        self.training_calls = int(asked), int(computed)
        self._memory = memory
        self.search_notes = memory["notes"]


def read_memory(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a saved strategy and check its form.

    Raises:
        SavedAgentError: the file is missing, damaged, of another kind or of a newer version.
    """
    name = os.fspath(check_path("path", path))
    try:
        memory = json.loads(Path(path).read_text())
    except FileNotFoundError:
        raise SavedAgentError(f"there is no saved strategy {name!r}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise SavedAgentError(f"{name!r} is damaged or not a saved strategy ({error})") from None
    if not isinstance(memory, dict) or memory.get("format") != FORMAT:
        raise SavedAgentError(f"{name!r} is not a strategy saved by this project")
    if memory.get("version") != VERSION:
        raise SavedAgentError(
            f"{name!r} has format version {memory.get('version')}; this release reads version {VERSION}"
        )
    ranking, calls = memory.get("ranking"), memory.get("calls")
    sound = (
        isinstance(ranking, list) and all(is_int(state) or isinstance(state, str) for state in ranking)
        and len(set(ranking)) == len(ranking) and is_int(memory.get("budget")) and 1 <= memory["budget"] <= len(ranking)
        and isinstance(calls, list) and len(calls) == 2 and all(is_int(call) and call >= 0 for call in calls)
        and isinstance(memory.get("options"), dict) and isinstance(memory.get("notes"), dict)
        and isinstance(memory.get("agent"), str) and is_real(memory.get("performance"))
        and {"world", "world_fingerprint"} <= set(memory)
    )  # fmt: skip
    if not sound:
        raise SavedAgentError(f"{name!r} is damaged: its entries do not make a ranking")
    return memory
