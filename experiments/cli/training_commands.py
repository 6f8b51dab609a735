"""The commands that train and tune: experts of games, learned selectors, and guided's schedule."""

import argparse
from pathlib import Path
from typing import Any

from experiments.cli.commands import OWN_WORLD, AddCommand
from experiments.cli.tables import table
from experiments.training.tune_guided import tune
from selectenv.checks import check_int, check_name
from selectenv.domains.minatar.games import GAMES
from selectenv.errors import OptionError
from selectenv.worlds import CONTROL

RECIPES = ("example-dqn", "tabular")


def add_to(add: AddCommand) -> None:
    """Add the commands to the command line."""
    _add_train_expert(add)
    _add_train_selector(add)
    _add_train_stacked(add)
    _add_tune_guided(add)
    _add_tune_selector(add)


def _add_train_expert(add: AddCommand) -> None:
    command = add(
        "train-expert",
        _train_expert,
        "train the expert of a MinAtar game (repeat the command to resume) or of a control world",
        {
            "train-expert Breakout": "train MinAtar's example DQN for 5,000,000 frames, as the shipped experts were",
            "train-expert Breakout --seed 1 --steps 1000000": "choose the seed and the number of frames",
            "train-expert Breakout --recipe tabular": "solve a table of the visited states exactly",
            "train-expert CartPole": "train the expert of a control world with Stable-Baselines3, in a few minutes",
        },
    )
    command.add_argument("game", help=", ".join((*GAMES, *CONTROL)))
    command.add_argument(
        "--recipe",
        choices=RECIPES,
        default=RECIPES[0],
        help="games: example-dqn, the published network (20 to 60 minutes), or tabular, a table (Breakout, a minute)",
    )
    command.add_argument(
        "--steps",
        type=int,
        help="training steps in total (default: games 5,000,000, or 2,000,000 with the recipe tabular; control worlds "
        "150,000 to 800,000)",
    )
    command.add_argument("--seed", type=int, default=0, help="seed of the training run (default: 0)")
    command.add_argument(
        "--out", type=Path, default=Path("out/experts"), help="directory to write to (default: out/experts)"
    )


def _add_train_selector(add: AddCommand) -> None:
    command = add(
        "train-selector",
        _train_selector,
        "train a selector on random worlds, to label in any world; repeat the command to resume",
        {
            "train-selector --decisions 50000": "train on fewer decisions than the shipped selectors",
            "train-selector --out out/mine.npz --seed 7": "choose the file and the seed",
        },
    )
    command.add_argument("--decisions", type=int, help="decisions to learn from (default: 288,000, as shipped)")
    command.add_argument("--seed", type=int, default=0, help="seed of the training run (default: 0)")
    command.add_argument("--hidden", type=int, help="width of the codes of states (default: 48)")
    command.add_argument("--rate", type=float, help="learning rate (default: 0.002)")
    command.add_argument(
        "--without-termination", action="store_true", help="hide the termination features: an ablation"
    )
    command.add_argument(
        "--out",
        type=Path,
        default=Path("out/selectors/learned.npz"),
        help="file to write (default: out/selectors/learned.npz)",
    )
    command.add_argument("--tensorboard", type=Path, metavar="DIR", help="log training for TensorBoard here")


def _add_train_stacked(add: AddCommand) -> None:
    command = add(
        "train-stacked",
        _train_stacked,
        "train the network of the strategy auto on random worlds; repeat the command to resume",
        {"train-stacked --chunks 10": "train on fewer decisions than the shipped network"},
    )
    command.add_argument("--chunks", type=int, help="chunks of 1,000 decisions to learn from (default: 25, as shipped)")
    command.add_argument("--seed", type=int, default=0, help="seed of the training run (default: 0)")
    command.add_argument("--jobs", type=int, default=1, help="number of local processes (default: 1)")
    command.add_argument(
        "--out",
        type=Path,
        default=Path("out/selectors/stacked.npz"),
        help="file to write, with decisions in a directory of the same name (default: out/selectors/stacked.npz)",
    )


def _add_tune_guided(add: AddCommand) -> None:
    command = add(
        "tune-guided",
        _tune_guided,
        "search the schedule of guided with Optuna, in a known world or in your own",
        {
            "tune-guided Tree --trials 20": "try 20 schedules in Tree",
            "tune-guided my_module:my_world": "use the TabularWorld that my_module.my_world() returns",
        },
    )
    command.add_argument("world", help=f"name of a tabular world; {OWN_WORLD}")
    command.add_argument("--trials", type=int, default=50, help="number of schedules to try (default: 50)")
    command.add_argument("--seeds", type=int, default=10, help="datasets and episodes per schedule (default: 10)")
    command.add_argument("--storage", type=Path, help="keep the trials in this file, so that the search can resume")


def _add_tune_selector(add: AddCommand) -> None:
    command = add(
        "tune-selector",
        _tune_selector,
        "search the training options of selectors with Optuna; repeat the command to resume",
        {"tune-selector --trials 40": "run trials until there are 40 in the storage"},
    )
    command.add_argument(
        "--trials", type=int, default=20, help="trials in total, including those already stored (default: 20)"
    )
    command.add_argument(
        "--decisions", type=int, default=20_000, help="labels that a trial learns from (default: 20,000)"
    )
    command.add_argument(
        "--storage",
        type=Path,
        default=Path("out/selectors/tuning.log"),
        help="file of the trials; optuna-dashboard reads it too (default: out/selectors/tuning.log)",
    )


def _train_expert(options: argparse.Namespace) -> None:
    game, seed = check_name("world", options.game, (*GAMES, *CONTROL)), check_int("--seed", options.seed, 0)
    folder = options.out / f"{game.lower()}-{seed}"
    if game in CONTROL:
        from experiments.training.control_experts import train_control_expert

        if options.recipe != RECIPES[0]:
            raise OptionError(f"{game} has one recipe: leave out --recipe")
        steps = None if options.steps is None else check_int("--steps", options.steps)
        path = folder / f"{CONTROL[game].make().name.lower()}.npz"
        card = train_control_expert(game, path, seed=seed, steps=steps)
    elif options.recipe == "tabular":
        from experiments.training.table_expert import ROUND_SIZE, ROUNDS, train_tabular_expert

        steps = ROUNDS * ROUND_SIZE if options.steps is None else check_int("--steps", options.steps)
        path = folder / f"{game.lower()}-tabular.npz"
        size = min(ROUND_SIZE, steps)
        if steps % size:
            raise OptionError(
                f"--steps of the recipe tabular must be a multiple of {ROUND_SIZE:,}, or less, not {steps:,}"
            )
        folder.mkdir(parents=True, exist_ok=True)
        card = train_tabular_expert(game, path, rounds=steps // size, size=size, seed=seed)
    else:
        from experiments.training.example_dqn import DqnSettings, finish_expert, train_example_dqn

        settings = DqnSettings() if options.steps is None else DqnSettings(frames=check_int("--steps", options.steps))
        run = train_example_dqn(game, folder, seed=seed, settings=settings)
        path = folder / f"{game.lower()}.npz"
        card = finish_expert(run, path)
    print(f"{game}: return {card['return']:.2f} +- {card['return_error']:.2f} over {card['episodes']} episodes; {path}")
    if game in CONTROL:
        print(f'next: selectenv.make_problem("{game}", expert="{path}") in Python')


def _train_selector(options: argparse.Namespace) -> None:
    """Train a selector and compare it with other strategies on held-out worlds."""
    from agents.learned.scorer import one_thread
    from agents.learned.state_features import SOUGHT_FEATURES, TERMINATION_FEATURES
    from experiments.training.selector_training import SelectorSettings, train_selector

    one_thread()
    given: dict[str, Any] = {
        name: getattr(options, name) for name in ("decisions", "hidden", "rate") if getattr(options, name) is not None
    }
    without = (*TERMINATION_FEATURES, *SOUGHT_FEATURES) if options.without_termination else ()
    settings = SelectorSettings(**given, without=without)
    found = train_selector(options.out, settings, options.seed, tensorboard=options.tensorboard)
    print(table(("on held-out worlds", "return"), [(name, f"{value:.3f}") for name, value in found.items()]))
    print(f"\nReturns are scaled: 0 is the return without labels, 1 that with all of them.\nselector: {options.out}")


def _train_stacked(options: argparse.Namespace) -> None:
    from agents.learned.scorer import one_thread
    from experiments.training.stacked_training import StackedSettings, train_stacked

    one_thread()
    settings = StackedSettings() if options.chunks is None else StackedSettings(chunks=options.chunks)
    jobs = check_int("--jobs", options.jobs)
    train_stacked(options.out, settings, check_int("--seed", options.seed, 0), jobs)
    print(f"network: {options.out}\nnext: agents.make('auto', weights='{options.out}') in Python")


def _tune_guided(options: argparse.Namespace) -> None:
    default, best, found = tune(options.world, options.trials, options.seeds, options.storage)
    print(f"default schedule: {default:.4f}\nbest of {options.trials}: {best:.4f} with {found}")


def _tune_selector(options: argparse.Namespace) -> None:
    from agents.learned.scorer import one_thread
    from experiments.training.selector_training import SelectorSettings
    from experiments.training.tune_selector import tune_selector

    one_thread()
    value, found = tune_selector(options.trials, SelectorSettings(decisions=options.decisions), options.storage)
    print(f"best of {options.trials}: {value:.4f} with {found}\ntrials: {options.storage}")
