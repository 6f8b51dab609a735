"""Search how to train a selector, with Optuna: trials are kept on disk, and hopeless ones are cut short."""

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

LOOKS = 5
"""Measurements of a trial: after each it may be cut short."""


def tune_selector(
    trials: int, settings: SelectorSettings, storage: str | os.PathLike[str], *, seed: int = 0, worlds: int = 24
) -> tuple[float, dict[str, Any]]:
    """Return the best normalised return on held-out worlds, and the options behind it.

    Args:
        trials: in all; those that the storage has already are not run again.
        settings: what is not searched, the number of decisions above all.
        storage: file of Optuna's journal; `optuna-dashboard` opens it.
        seed: of all trials.
        worlds: held-out worlds that a trial is measured in.

    Raises:
        MissingExtraError: Optuna is not installed.
        OptionError: no trials.
        JournalError: the storage is damaged or something else; the message says how to keep its intact trials.
    """
    try:
        import optuna
    except ModuleNotFoundError:
        raise MissingExtraError("tuning needs Optuna: pip install 'selectenv[meta]'") from None
    check_int("--trials", trials)
    journal = open_journal(storage)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    name = f"selector, {settings.decisions} decisions, {worlds} worlds of {settings.padding} states, seed {seed}"
    study = optuna.create_study(
        study_name=name,
        storage=journal,
        direction="maximize",
        load_if_exists=True,
        pruner=optuna.pruners.MedianPruner(n_startup_trials=4),
    )
    study.sampler = optuna.samplers.TPESampler(seed=seed + len(study.trials))  # going on draws other options
    measured = held_out(settings.padding, worlds, (), "tuning worlds")
    done = len([trial for trial in study.trials if trial.state.is_finished()])
    for _ in progress(range(done, trials), max(trials - done, 1), "tuning"):
        trial = study.ask()
        chosen = replace(
            settings,
            hidden=trial.suggest_categorical("hidden", (32, 64, 128)),
            rate=trial.suggest_float("rate", 1e-4, 1e-2, log=True),
            temperature=trial.suggest_float("temperature", 0.005, 0.5, log=True),
            teacher_share=trial.suggest_float("teacher_share", 0.0, 0.75),
        )
        with TemporaryDirectory() as folder:
            value, cut = _trial(chosen, seed, measured, Path(folder) / "selector.npz", trial)
        study.tell(trial, None if cut else value, state=optuna.trial.TrialState.PRUNED if cut else None)
        show(f"trial {trial.number}: {value:.3f}{' (cut short)' if cut else ''} {trial.params}")
    return float(study.best_value), dict(study.best_params)


def _trial(settings: SelectorSettings, seed: int, measured: Any, path: Path, trial: Any) -> tuple[float, bool]:
    """Train, measuring on the way; return the last measurement and whether the trial was cut short."""
    run, value = SelectorTraining(settings, seed), float("nan")
    rounds = -(-settings.decisions // SIDE_BY_SIDE)
    stops = {max(1, rounds * (look + 1) // LOOKS) for look in range(LOOKS)}
    for done in range(1, rounds + 1):
        run.advance()
        if done in stops:
            save_selector(run, path)
            value = measured.measure(LearnedSelector(str(path)))
            trial.report(value, done)
            if trial.should_prune() and done < rounds:
                return value, True
    return value, False
