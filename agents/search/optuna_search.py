"""optuna: any Optuna sampler optimises one score per state, or swaps states of the greedy set."""

import hashlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.base import Taxonomy, top_k
from agents.registry import register
from agents.search.search_agent import SearchAgent, SearchResult, SearchTask
from agents.search.sequential_greedy import SequentialGreedy
from selectenv.checks import check_instance, check_int, check_name, check_path
from selectenv.errors import JournalError, MissingExtraError, OptionError
from selectenv.io.journal import open_journal
from selectenv.options import DATASET_MINIMUM
from selectenv.problem import SelectionProblem
from selectenv.streams import seed_word
from selectenv.typing import IntArray

if TYPE_CHECKING:
    import optuna

SAMPLERS = {"tpe": "TPESampler", "cmaes": "CmaEsSampler", "ga": "NSGAIISampler", "random": "RandomSampler"}
MODES = ("scores", "swaps")


@register("optuna")
@dataclass
class OptunaSearch(SearchAgent):
    """Evaluates batches of trials of an Optuna study; with a storage, the search can be interrupted and resumed.

    A resumed study counts the trials it already has: running 200 evaluations twice evaluates 200 trials in total.
    """

    max_evaluations: int = 200
    """Number of trials in total; each is one evaluator call."""
    sampler: str = "tpe"
    """"tpe", "cmaes", "ga" (NSGA-II's genetic algorithm), "random", or the name of any class in `optuna.samplers`."""
    mode: str = "scores"
    """"scores": one score per state; the top B are labelled. "swaps": swaps of states of the greedy set."""
    swaps: int = 3
    """Maximum number of swaps per trial."""
    batch: int = 10
    """Number of trials that are sampled, and evaluated, together."""
    storage: str | None = None
    """None keeps the study in memory; a path (or an Optuna storage URL) keeps it on disk."""
    study: str | None = None
    """Name of the study in the storage; defaults to a name derived from the task."""
    sampler_options: dict[str, Any] | None = None
    """Arguments of the sampler's constructor."""

    name = "optuna"
    taxonomy = Taxonomy(test_loop="open", training="batch", evaluator="training")

    def __post_init__(self) -> None:
        """Reject invalid options."""
        super().__post_init__()
        check_instance("sampler", self.sampler, str)
        if self.study is not None:
            check_instance("study", self.study, str)
        check_name("mode", self.mode, MODES)
        for option in ("max_evaluations", "swaps", "batch"):
            setattr(self, option, check_int(option, getattr(self, option)))
        if self.storage is not None:
            is_url = isinstance(self.storage, str) and "://" in self.storage
            self.storage = self.storage if is_url else os.fspath(check_path("storage", self.storage))
        if self.sampler_options is not None:
            check_instance("sampler_options", self.sampler_options, dict)

    def search(self, task: SearchTask) -> SearchResult:
        """Sample, evaluate and record batches of trials until ``max_evaluations`` are done."""
        base = SequentialGreedy().search(task).ranking[: task.budget] if self.mode == "swaps" else None
        study = self._open_study(task, base)
        task.problem.evaluator.count(asked=len(_complete(study)))  # stored values are disclosed too
        while (done := len(_complete(study))) < self.max_evaluations:
            trials = [study.ask() for _ in range(min(self.batch, self.max_evaluations - done))]
            sets = np.stack([self._labels(trial, task, base) for trial in trials])
            for trial, labels, value in zip(trials, sets, task.evaluate(sets), strict=True):
                trial.set_user_attr("labels", task.problem.states[labels].tolist())
                study.tell(trial, float(value))
        best = study.best_trial
        chosen = task.problem.actions(best.user_attrs["labels"])
        return SearchResult(task.by_visitation(chosen), float(study.best_value), {"trials": len(_complete(study))})

    def _labels(self, trial: "optuna.Trial", task: SearchTask, base: IntArray | None) -> IntArray:
        """Return the state numbers [labels] that a trial encodes."""
        if base is None:
            scores = [trial.suggest_float(str(state), -1.0, 1.0) for state in task.problem.states[task.candidates]]
            return task.candidates[top_k(np.array(scores), task.budget)]
        chosen = base.copy()
        for i in range(self.swaps):
            outside = np.setdiff1d(task.candidates, chosen)
            place = trial.suggest_int(f"out-{i}", -1, len(chosen) - 1)  # -1: no swap
            entering = trial.suggest_int(f"in-{i}", 0, max(len(outside) - 1, 0))
            if place >= 0 and len(outside):
                chosen[place] = outside[entering]
        return chosen

    def _open_study(self, task: SearchTask, base: IntArray | None) -> "optuna.Study":
        """Create or resume the study of this task.

        Raises:
            OptionError: the storage or the sampler's options are not usable, or the study belongs to another task.
            JournalError: the journal is damaged; the message says how to keep its intact trials.
        """
        try:
            import optuna
        except ModuleNotFoundError:
            raise MissingExtraError("the optuna strategy needs Optuna: pip install 'selectenv[meta]'") from None
        known = [*SAMPLERS, *(name for name in dir(optuna.samplers) if name.endswith("Sampler"))]
        chosen = check_name("sampler", self.sampler, known)
        maker: Any = getattr(optuna.samplers, SAMPLERS.get(chosen, chosen))
        identity = self._identity(task, base)
        name = self.study or f"{task.problem.dataset.spec.get('world', 'data')}-{task.budget}-{identity}"
        verbosity = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            storage: Any = self.storage
            if storage is not None and "://" not in str(storage):
                storage = open_journal(storage)
            study = optuna.create_study(study_name=name, storage=storage, direction="maximize", load_if_exists=True)
        except JournalError:
            raise
        except Exception as error:
            raise OptionError(f"the storage {self.storage!r} cannot be used: {type(error).__name__}: {error}") from None
        finally:
            optuna.logging.set_verbosity(verbosity)
        if study.user_attrs.get("task", identity) != identity:
            raise OptionError(f"the study {name!r} belongs to another task: other data, learner, budget or settings")
        study.set_user_attr("task", identity)
        for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
            # The trial was running when an earlier run was interrupted.
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        seed = int(seed_word(task.seed, "selection", self.name, identity, len(study.trials))) % 2**32
        try:
            study.sampler = maker(**{"seed": seed, **(self.sampler_options or {})})
        except (TypeError, ValueError) as error:
            raise OptionError(f"sampler_options do not fit the sampler {self.sampler!r}: {error}") from None
        return study

    def _identity(self, task: SearchTask, base: IntArray | None) -> str:
        """Return a hash of everything that determines the value of a trial."""
        problem = task.problem
        content = [
            problem.dataset.fingerprint,
            type(problem.learner).__name__,
            _settings_of(problem),
            type(problem.evaluator.engine).__name__,
            problem.evaluator.discount,
            task.budget,
            np.flatnonzero(task.fixed).tolist(),
            task.seed,
            self.mode,
            self.sampler,
            self.swaps,
            None if base is None else base.tolist(),
        ]
        return hashlib.blake2b(json.dumps(content).encode(), digest_size=8).hexdigest()


def _settings_of(problem: SelectionProblem) -> dict[str, Any]:
    """Return the settings of a problem's learner, under the names that the seeds of committed results derive from."""
    found = {name: value for name, value in vars(problem.learner).items() if isinstance(value, str | int | float)}
    if found.get("rule") in ("uds", "adapted"):
        found["adapted"] = found.pop("rule") == "adapted"
    if "impute" in found:
        oracle = found["impute"] == DATASET_MINIMUM
        found["impute"] = problem.dataset.smallest_reward if oracle else found["impute"]
    if "tolerance" in found:
        found["stop"] = found.pop("tolerance")
    return dict(sorted(found.items()))


def _complete(study: "optuna.Study") -> list["optuna.trial.FrozenTrial"]:
    """Return the trials that were evaluated."""
    return [trial for trial in study.get_trials(deepcopy=False) if trial.value is not None]
