"""Search the schedule of guided with Optuna, in a known world or in one of your own."""

import importlib
import os
from pathlib import Path
from typing import Any

import numpy as np

import agents
import selectenv
from agents.heuristics.guided import DECAYS
from experiments.engine.problems import prefix_masks
from experiments.protocol.budgets import FEEDBACK
from selectenv.budget import number_of_labels
from selectenv.checks import check_int, check_name
from selectenv.domains.tabular import TabularWorld
from selectenv.env import RewardSelectionEnv
from selectenv.errors import MissingExtraError, OptionError
from selectenv.io.progress import progress
from selectenv.problem import SelectionProblem

DEFAULT = {"decay": "linear", "temperature": 6.0, "fixtime": 0.5}


def find_world(name: str) -> str | TabularWorld:
    """Return a known world's name, or the world that "module:function" makes."""
    if ":" not in name:
        return check_name("world", name, selectenv.TABULAR)
    module, _, function = name.partition(":")
    try:
        world = getattr(importlib.import_module(module), function)()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise OptionError(f"{name!r} makes no world: it must be module:function without arguments ({error})") from None
    if not isinstance(world, TabularWorld):
        raise OptionError(f"{name!r} makes {type(world).__name__}, not a TabularWorld")
    return world


def mean_return(problems: list[SelectionProblem], options: dict[str, Any]) -> float:
    """Return guided's mean return over five budgets and one episode a problem."""
    found = []
    for seed, task in enumerate(problems):
        budgets = tuple(sorted({number_of_labels(share, task.n_states) for share in FEEDBACK}))
        episode = agents.play(RewardSelectionEnv(task, budgets[-1]), agents.make("guided", **options), seed)
        found.append(task.performance_many(prefix_masks(episode.labels, budgets, task.n_states)).mean())
    return float(np.mean(found))


def tune(
    name: str, trials: int, seeds: int, storage: str | os.PathLike[str] | None = None
) -> tuple[float, float, dict[str, Any]]:
    """Return what the default schedule earns, what the best found earns, and its options."""
    try:
        import optuna
        from optuna.storages.journal import JournalFileBackend
    except ModuleNotFoundError:
        raise MissingExtraError("tuning needs Optuna: pip install 'selectenv[meta]'") from None
    check_int("--trials", trials)
    world = find_world(name)
    problems = [selectenv.make_problem(world, dataset_seed=seed) for seed in range(check_int("--seeds", seeds))]
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    kept: Any = None
    if storage is not None:
        Path(storage).parent.mkdir(parents=True, exist_ok=True)
        kept = optuna.storages.JournalStorage(JournalFileBackend(os.fspath(storage)))
    study = optuna.create_study(
        study_name=f"guided-{name}-{seeds}", storage=kept, direction="maximize", load_if_exists=True,
        sampler=optuna.samplers.TPESampler(seed=0),
    )  # fmt: skip
    if not study.trials:
        study.enqueue_trial(DEFAULT)
    done = len([trial for trial in study.trials if trial.value is not None])
    for _ in progress(range(done, trials), trials - done, "tuning"):
        trial = study.ask()
        options = {
            "decay": trial.suggest_categorical("decay", DECAYS),
            "temperature": trial.suggest_float("temperature", 0.5, 20.0, log=True),
            "fixtime": trial.suggest_float("fixtime", 0.0, 1.0),
        }
        study.tell(trial, mean_return(problems, options))
    return mean_return(problems, DEFAULT), float(study.best_value), dict(study.best_params)
