"""Tune the schedule of guided with Optuna, in a registered world or in a user-defined one."""

import os
from typing import Any

import numpy as np

import agents
import selectenv
from agents.heuristics.guided import DECAYS
from experiments.engine.problems import prefix_masks
from experiments.protocol.budgets import FEEDBACK
from selectenv.budget import number_of_labels
from selectenv.checks import check_int
from selectenv.env import RewardSelectionEnv
from selectenv.errors import MissingExtraError, OptionError
from selectenv.io.journal import open_journal
from selectenv.io.progress import progress
from selectenv.problem import SelectionProblem
from selectenv.worlds import find_world

DEFAULT = {"decay": "linear", "temperature": 6.0, "fixtime": 0.5}


def check_tabular(name: str) -> None:
    """Raise unless a world is tabular; see `find_world` for the errors of names that do not exist.

    Raises:
        OptionError: the world is not tabular.
    """
    world = find_world(name, {})
    if world.family != "tabular":
        raise OptionError(f"guided is tuned in tabular worlds: {name!r} is a {type(world).__name__}")


def mean_return(problems: list[SelectionProblem], options: dict[str, Any]) -> float:
    """Return the mean return of guided over five budgets, with one episode per problem."""
    found = []
    for seed, task in enumerate(problems):
        budgets = tuple(sorted({number_of_labels(share, task.n_states) for share in FEEDBACK}))
        episode = agents.play(RewardSelectionEnv(task, budgets[-1]), agents.make("guided", **options), seed)
        found.append(task.performance_many(prefix_masks(episode.labels, budgets, task.n_states)).mean())
    return float(np.mean(found))


def tune(
    name: str, trials: int, seeds: int, storage: str | os.PathLike[str] | None = None
) -> tuple[float, float, dict[str, Any]]:
    """Return the mean return of the default schedule, that of the best schedule found, and its options.

    Raises:
        JournalError: the file ``storage`` is damaged; the message says how to keep its intact trials.
        MissingExtraError: Optuna is not installed.
        OptionError: ``trials`` or ``seeds`` is not positive, or the world does not exist.
    """
    try:
        import optuna
    except ModuleNotFoundError:
        raise MissingExtraError("tuning needs Optuna: pip install 'selectenv[meta]'") from None
    check_int("--trials", trials)
    check_tabular(name)
    problems = [selectenv.make_problem(name, dataset_seed=seed) for seed in range(check_int("--seeds", seeds))]
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    kept = None if storage is None else open_journal(storage)
    study = optuna.create_study(
        study_name=f"guided-{name}-{seeds}",
        storage=kept,
        direction="maximize",
        load_if_exists=True,
        sampler=optuna.samplers.TPESampler(seed=0),
    )
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
