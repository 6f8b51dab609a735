"""Tune the training of a selector with Optuna: trials are stored on disk, and unpromising ones are pruned."""

import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agents.learned.selector import LearnedSelector
from experiments.training.selector_training import (
    SIDE_BY_SIDE,
    SelectorSettings,
    SelectorTraining,
    held_out,
    save_selector,
)
from selectenv.checks import check_int
from selectenv.errors import MissingExtraError
from selectenv.io.journal import open_journal
from selectenv.io.progress import progress, show

EVALUATIONS = 5
"""Number of evaluations per trial; a trial may be pruned after each."""


def tune_selector(
    trials: int, settings: SelectorSettings, storage: str | os.PathLike[str], *, seed: int = 0, worlds: int = 24
) -> tuple[float, dict[str, Any]]:
    """Return the best normalised return on held-out worlds, and the options that reached it.

    Args:
        trials: number of trials in total; those already in the storage are not repeated.
        settings: the settings that are not tuned, in particular the number of decisions.
        storage: file of the Optuna journal; `optuna-dashboard` can open it.
        seed: seed of all trials.
        worlds: number of held-out worlds for evaluation.

    Raises:
        MissingExtraError: Optuna is not installed.
        OptionError: ``trials`` is not positive.
        JournalError: the storage is damaged or not a journal; the message says how to keep its intact trials.
    """
    try:
        import optuna
    except ModuleNotFoundError:
        raise MissingExtraError("tuning needs Optuna: pip install 'selectenv[meta]'") from None
    check_int("--trials", trials)
    journal = open_journal(storage)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    name = f"selector, {settings.decisions} decisions, {worlds} worlds of up to {settings.largest} states, seed {seed}"
    study = optuna.create_study(
        study_name=name,
        storage=journal,
        direction="maximize",
        load_if_exists=True,
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4),
    )
    study.sampler = optuna.samplers.TPESampler(seed=seed + len(study.trials))  # a resumed search samples other options
    measured = held_out(settings.largest, worlds, (), "tuning worlds")
    done = len([trial for trial in study.trials if trial.state.is_finished()])
    for _ in progress(range(done, trials), max(trials - done, 1), "tuning"):
        trial = study.ask()
        chosen = replace(
            settings,
            hidden=trial.suggest_categorical("hidden", (32, 64, 128)),
            rate=trial.suggest_float("rate", 1e-4, 1e-2, log=True),
            temperature=trial.suggest_float("temperature", 0.05, 0.5, log=True),
            teacher_share=trial.suggest_float("teacher_share", 0.0, 0.75),
        )
        with TemporaryDirectory() as folder:
            value, pruned = _trial(chosen, seed, measured, Path(folder) / "selector.npz", trial)
        study.tell(trial, None if pruned else value, state=optuna.trial.TrialState.PRUNED if pruned else None)
        show(f"trial {trial.number}: {value:.3f}{' (pruned)' if pruned else ''} {trial.params}")
    return float(study.best_value), dict(study.best_params)


def _trial(settings: SelectorSettings, seed: int, measured: Any, path: Path, trial: Any) -> tuple[float, bool]:
    """Train with intermediate evaluations; return the last normalised return and whether the trial was pruned."""
    run, value = SelectorTraining(settings, seed), float("nan")
    rounds = -(-settings.decisions // SIDE_BY_SIDE)
    stops = {max(1, rounds * (i + 1) // EVALUATIONS) for i in range(EVALUATIONS)}
    for done in range(1, rounds + 1):
        run.advance()
        if done in stops:
            save_selector(run, path)
            value = measured.measure(LearnedSelector(str(path)))
            trial.report(value, done)
            if trial.should_prune() and done < rounds:
                return value, True
    return value, False
