"""optuna: any Optuna sampler plays the bandit (a score a state), or exchanges states of the greedy set."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.base import Taxonomy, top_k
from agents.registry import register
from agents.search.search_agent import SearchAgent, SearchResult, SearchTask
from agents.search.sequential_greedy import SequentialGreedy
from selectenv.checks import check_instance, check_int, check_name, check_path
from selectenv.errors import MissingExtraError, OptionError
from selectenv.streams import seed_word
from selectenv.typing import IntArray

if TYPE_CHECKING:
    import optuna

SAMPLERS = {"tpe": "TPESampler", "cmaes": "CmaEsSampler", "ga": "NSGAIISampler", "random": "RandomSampler"}
MODES = ("scores", "swaps")


@register("optuna")
@dataclass
class OptunaSearch(SearchAgent):
    """Asks a study for batches of trials and tells it what they earn; with a storage it can be stopped and resumed.

    A resumed study counts the trials it already has: asking for 200 evaluations twice runs 200.
    """

    max_evaluations: int = 200
    """Number of trials in total; each is one evaluator call."""
    sampler: str = "tpe"
    """"tpe", "cmaes", "ga" (NSGA-II's genetic algorithm), "random", or the name of any class in `optuna.samplers`;
    ``sampler_options`` go to its constructor."""
    mode: str = "scores"
    """"scores": one score a state, the top B are labelled. "swaps": exchanges from the greedy set."""
    swaps: int = 3
    """Exchanges a trial may make."""
    batch: int = 10
    """Trials asked for at a time; they are evaluated together."""
    storage: str | None = None
    """None keeps the study in memory; a path (or an Optuna storage URL) keeps it on disk."""
    study: str | None = None
    """Name of the study in the storage; made from the task if left out."""
    sampler_options: dict[str, Any] | None = None

    name = "optuna"
    taxonomy = Taxonomy(test_loop="open", training="batch", evaluator="training")

    def __post_init__(self) -> None:
        """Refuse options that make no search."""
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
        """Ask, evaluate, tell."""
        base = SequentialGreedy().search(task).ranking[: task.budget] if self.mode == "swaps" else None
        study = self._open_study(task, base)
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
        """Return the set of states that a trial stands for."""
        if base is None:
            scores = [trial.suggest_float(str(state), -1.0, 1.0) for state in task.problem.states[task.candidates]]
            return task.candidates[top_k(np.array(scores), task.budget)]
        chosen = base.copy()
        for i in range(self.swaps):
            outside = np.setdiff1d(task.candidates, chosen)
            place = trial.suggest_int(f"out-{i}", -1, len(chosen) - 1)  # -1: no exchange
            entering = trial.suggest_int(f"in-{i}", 0, max(len(outside) - 1, 0))
            if place >= 0 and len(outside):
                chosen[place] = outside[entering]
        return chosen

    def _open_study(self, task: SearchTask, base: IntArray | None) -> "optuna.Study":
        """Open the study of this task, new or resumed.

        Raises:
            OptionError: the storage or the sampler's options are not usable, or the study belongs to another task.
        """
        try:
            import optuna
            from optuna.storages.journal import JournalFileBackend
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
                path = Path(storage)
                path.parent.mkdir(parents=True, exist_ok=True)
                storage = optuna.storages.JournalStorage(JournalFileBackend(str(path)))
            study = optuna.create_study(study_name=name, storage=storage, direction="maximize", load_if_exists=True)
        except Exception as error:
            raise OptionError(f"the storage {self.storage!r} cannot be used: {type(error).__name__}: {error}") from None
        finally:
            optuna.logging.set_verbosity(verbosity)
        if study.user_attrs.get("task", identity) != identity:
            raise OptionError(f"the study {name!r} belongs to another task: other data, learner, budget or settings")
        study.set_user_attr("task", identity)
        for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)  # cut off when an earlier run was stopped
        seed = int(seed_word(task.seed, "selection", self.name, identity, len(study.trials))) % 2**32
        try:
            study.sampler = maker(**{"seed": seed, **(self.sampler_options or {})})
        except (TypeError, ValueError) as error:
            raise OptionError(f"sampler_options do not fit the sampler {self.sampler!r}: {error}") from None
        return study

    def _identity(self, task: SearchTask, base: IntArray | None) -> str:
        """Return a hash of everything that decides what a trial is worth."""
        problem, learner = task.problem, task.problem.learner
        settings = {**vars(learner), "adapted": learner.rule == "adapted", "rule": None}
        rule = {name: value for name, value in sorted(settings.items()) if isinstance(value, str | int | float)}
        content = [
            problem.dataset.fingerprint, type(learner).__name__, rule, type(problem.evaluator.engine).__name__,
            problem.evaluator.discount, task.budget, np.flatnonzero(task.fixed).tolist(), task.seed,
            self.mode, self.sampler, self.swaps, None if base is None else base.tolist(),
        ]  # fmt: skip
        return hashlib.blake2b(json.dumps(content).encode(), digest_size=8).hexdigest()


def _complete(study: "optuna.Study") -> list["optuna.trial.FrozenTrial"]:
    """Return the trials that were evaluated."""
    return [trial for trial in study.get_trials(deepcopy=False) if trial.value is not None]
