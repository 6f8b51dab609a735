"""The commands around learned selectors: train one, and search how to train one."""

import argparse
from collections.abc import Callable
from pathlib import Path

from experiments.cli.tables import table


def add_to(add: Callable[[str, object, str], argparse.ArgumentParser]) -> None:
    """Add the commands to the command line."""
    command = add("train-selector", train_selector_command, "train a selector for any world; run again to go on")
    command.add_argument(
        "--decisions", type=int, help="labels to learn from (default 150,000, as for the shipped ones)"
    )
    command.add_argument("--seed", type=int, default=0, help="(default 0)")
    command.add_argument("--hidden", type=int, help="width of the network (default 64)")
    command.add_argument("--rate", type=float, help="learning rate (default 0.001)")
    command.add_argument(
        "--without-termination", action="store_true", help="hide where episodes terminate: an ablation"
    )
    command.add_argument("--out", type=Path, default=Path("out/selectors/learned.npz"), help="file to write")
    command.add_argument("--tensorboard", type=Path, metavar="DIR", help="log training for TensorBoard")
    command = add("tune-selector", tune_selector_command, "search how to train a selector, with Optuna")
    command.add_argument("--trials", type=int, default=20, help="in all, those done before included (default 20)")
    command.add_argument("--decisions", type=int, default=20_000, help="labels a trial learns from (default 20,000)")
    command.add_argument(
        "--storage", type=Path, default=Path("out/selectors/tuning.log"),
        help="file of the trials, for optuna-dashboard too (default out/selectors/tuning.log)",
    )  # fmt: skip


def train_selector_command(options: argparse.Namespace) -> None:
    """Train a selector and say how it does beside its rivals."""
    from agents.learned.scorer import one_thread
    from agents.learned.state_features import TERMINATION_FEATURES
    from experiments.training.selector_training import SelectorSettings, train_selector

    one_thread()

    given = {
        name: getattr(options, name) for name in ("decisions", "hidden", "rate") if getattr(options, name) is not None
    }
    settings = SelectorSettings(**given, without=TERMINATION_FEATURES if options.without_termination else ())
    found = train_selector(options.out, settings, options.seed, tensorboard=options.tensorboard)
    print(table(("on held-out worlds", "return"), [(name, f"{value:.3f}") for name, value in found.items()]))
    print(f"\n0 is no label, 1 is all of them; selector: {options.out}")


def tune_selector_command(options: argparse.Namespace) -> None:
    """Search options of training."""
    from agents.learned.scorer import one_thread
    from experiments.training.selector_training import SelectorSettings
    from experiments.training.tune_selector import tune_selector

    one_thread()

    value, found = tune_selector(options.trials, SelectorSettings(decisions=options.decisions), options.storage)
    print(f"best of {options.trials}: {value:.4f} with {found}\ntrials: {options.storage}")
