"""Base class of strategies that search for a label set with the evaluator, then label it in any dataset."""

import hashlib
import json
import os
from abc import abstractmethod
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from agents.base import Info, Observation, RankingAgent, only_open
from agents.errors import NotTrainedError, SavedAgentError
from selectenv.checks import as_ints, check_instance, check_int, check_path, is_int, is_real
from selectenv.env import RewardSelectionEnv
from selectenv.errors import LabelError, OptionError
from selectenv.evaluation.evaluator import Calls
from selectenv.io.atomic import whole_file
from selectenv.problem import SelectionProblem
from selectenv.typing import BoolArray, FloatArray, IntArray
from selectenv.view import SelectionView
from selectenv.wrappers.batch_labels import selection_env

FORMAT, VERSION = "selectenv-agent", 3


class SearchTask:
    """The input of a search: a problem, a budget, and initial labels."""

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
        # Raises now, rather than after the first round, if the evaluator is locked or missing.
        self.problem.performance_many(np.zeros((0, self.n_states), bool))

    @property
    def n_states(self) -> int:
        """Number of states of the problem."""
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
        """Return the performances [sets] of sets of state numbers [sets, k]."""
        return self.problem.performance_many(self.masks(sets))

    def evaluate_added(self, bases: BoolArray, row: IntArray, added: IntArray) -> FloatArray:
        """Return the performances [sets] of the label sets ``bases[row]``, each with the state ``added`` [sets]."""
        if self.problem.warm_starts:
            returns = np.empty(len(row))
            for i, base in enumerate(bases):
                returns[row == i] = self.problem.performance_with(base, added[row == i])
            return returns
        masks = bases[row]
        masks[np.arange(len(row)), added] = True
        return self.problem.performance_many(masks)

    def by_visitation(self, chosen: IntArray) -> IntArray:
        """Return the ranking that starts with ``chosen``, followed by all other candidates, most visited first."""
        rest = np.setdiff1d(self.candidates, chosen)
        return np.concatenate([chosen, rest[np.argsort(-self.problem.dataset.visitation[rest], kind="stable")]])


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The result of a search."""

    ranking: IntArray
    """Numbers of all candidates: first the chosen set, then the replacements for states that other datasets lack."""
    performance: float
    """Performance of the chosen set on the training data."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Details of the search, ready for JSON."""


class SearchAgent(RankingAgent):
    """Searches in `train`, then labels the states of the resulting ranking in order."""

    any_budget = False
    """Whether the first states of the ranking are also the result for smaller budgets."""

    def __post_init__(self) -> None:
        """Start untrained."""
        self._memory: dict[str, Any] | None = None
        self._order: IntArray | None = None
        self._n_states = 0
        self.replaced: list[Any] = []
        """Ids that the current dataset never visits; the next states of the ranking replace them."""

    @abstractmethod
    def search(self, task: SearchTask) -> SearchResult:
        """Return the best label set found."""

    def train(self, env: gym.Env[Any, Any], seed: int = 0) -> None:
        """Search for the best labels of ``env``, given the initial labels of an episode with this seed.

        Raises:
            PhaseError: the environment is in its test phase.
        """
        inner, seed = selection_env(env), check_int("seed", seed, 0)
        before = replace(inner.calls)
        task = SearchTask(inner, seed)
        found = self.search(task)
        dataset = inner.problem.dataset
        self.training_calls = inner.calls - before
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
            "calls": self.training_calls.to_dict(),
            "notes": found.notes,
        }
        self.search_notes = found.notes

    @property
    def memory(self) -> dict[str, Any]:
        """The result of training, ready for JSON: options, world, budget, ranking (ids), performance, calls, notes."""
        if self._memory is None:
            raise NotTrainedError(f"{self.name} is not trained: call agent.train(env) first, or load a saved strategy")
        return self._memory

    def begin(self, view: SelectionView) -> None:
        """Translate the ids of the ranking into state numbers of this dataset.

        Raises:
            NotTrainedError: the strategy is not trained.
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
        """Return minus the rank of each state [n]; states that are not in the ranking come last."""
        if self._order is None:
            raise NotTrainedError(
                f"{self.name} does not know this dataset yet: call agent.begin(env.unwrapped.view()) after reset"
            )
        scores = np.full(self._n_states, -float(len(self._order)))
        scores[self._order] = -np.arange(len(self._order))
        return only_open(scores, info)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the result of training as JSON with a digest; the file is written atomically."""
        text = json.dumps({**self.memory, "digest": _digest(self.memory)}, indent=1)
        with whole_file(path) as file:
            file.write(text.encode())
        return Path(path)

    def remember(self, memory: dict[str, Any]) -> None:
        """Restore the result of training from a saved strategy."""
        self.training_calls = Calls.from_dict(memory["calls"])
        self._memory = memory
        self.search_notes = memory["notes"]


def _digest(memory: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(memory, sort_keys=True).encode(), digest_size=16).hexdigest()


def _are_calls(parts: Any) -> bool:
    try:
        Calls.from_dict(parts)
    except OptionError:
        return False
    return True


def read_memory(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a saved strategy and check its format.

    Raises:
        SavedAgentError: the file is missing, damaged, not a saved strategy, or has another format version.
    """
    name = os.fspath(check_path("path", path))
    try:
        memory = json.loads(Path(path).read_text("utf-8"))
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
    if memory.pop("digest", None) != _digest(memory):
        raise SavedAgentError(f"{name!r} is damaged: its content does not match its digest; train and save again")
    ranking = memory.get("ranking")
    valid = (
        isinstance(ranking, list)
        and all(is_int(state) or isinstance(state, str) for state in ranking)
        and len(set(ranking)) == len(ranking)
        and is_int(memory.get("budget"))
        and 1 <= memory["budget"] <= len(ranking)
        and _are_calls(memory.get("calls"))
        and isinstance(memory.get("options"), dict)
        and isinstance(memory.get("notes"), dict)
        and isinstance(memory.get("agent"), str)
        and is_real(memory.get("performance"))
        and {"world", "world_fingerprint"} <= set(memory)
    )
    if not valid:
        raise SavedAgentError(f"{name!r} is damaged: its entries do not form a ranking")
    return memory
