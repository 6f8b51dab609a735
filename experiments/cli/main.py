"""The command line: list, run and compare studies, draw what strategies label, show the best sets known."""

import argparse
import io
import sys
from collections import Counter
from pathlib import Path

import agents
import selectenv
from agents.errors import SearchLimitError
from experiments import demo
from experiments.analysis import report
from experiments.analysis.best_known import best_known, update
from experiments.analysis.figures import selections_figure
from experiments.analysis.tensorboard_log import TensorBoardLog
from experiments.benchmarks import bench
from experiments.cli import selector_commands
from experiments.cli.tables import table
from experiments.engine.cell import Cell
from experiments.engine.runner import run_cells
from experiments.engine.store import DEFAULT_PATH, ResultsStore
from experiments.engine.study import Row, Study
from experiments.protocol.budgets import BUDGETS, WORLDS
from experiments.studies import find_studies
from experiments.training.expert_cards import cards_table, curves
from experiments.training.tune_guided import tune
from selectenv.checks import check_int, check_name
from selectenv.domains.minatar.games import GAMES
from selectenv.errors import MissingExtraError, OptionError, SelectEnvError
from selectenv.options import SCALES

EXAMPLES = """examples:
  selectenv list                                  the studies and the questions they answer
  selectenv run heuristics-uds --jobs 2           run one; stop it at any time, run it again to go on
  selectenv run all --only Graph/guided           only one world, or one strategy in it
  selectenv run minatar-heuristics --jobs 2       networks that learn from labels; says first how long it takes
  selectenv compare heuristics-uds                ours beside the published figures, with verdicts
  selectenv tune-guided my_module:my_world        search guided's schedule in a world of your own
  selectenv report                                one HTML file with all tables and figures
  selectenv show CliffWalk --labels 12            what the strategies label, drawn
  selectenv train-expert Breakout                 train the expert behind a MinAtar game's data
  selectenv experts                               what the shipped experts earn, and how they learned
  selectenv train-selector --decisions 50000      train a network that labels in worlds it never saw
  selectenv best CliffWalk                        the best label sets known, and what is proved of them
"""


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return 0 if all went well, 1 for an error, 130 when interrupted."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # file names need not be valid text
    known = parser()
    options, rest = known.parse_known_args(arguments)
    if "rest" in options:
        options.rest = rest
    elif rest:
        known.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        options.command(options)
    except (SelectEnvError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            return 0
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; everything finished is stored, run the same command to go on", file=sys.stderr)
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = argparse.ArgumentParser(
        prog="selectenv", description="Which rewards matter? Studies of reward selection.", epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, function: object, text: str, add_help: bool = True) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text, add_help=add_help)
        command.set_defaults(command=function)
        return command

    add("list", _list, "list the studies")
    for name, function, text in (
        ("run", _run, "run a study; what is done already is not run again"),
        ("compare", _compare, "set the results of a study beside the published figures"),
    ):
        command = add(name, function, text)
        command.add_argument("study", help="name of a study" + (", or all but the longest" if name == "run" else ""))
        command.add_argument("--seeds", type=int, help="seeds of strategies that leave something to chance")
        command.add_argument("--solver", default="exact", help="exact (default) or sampled, the published learner")
        command.add_argument("--scale", help="MinAtar: only this scale, laptop or paper (networks: laptop by default)")
        command.add_argument("--only", metavar="WORLD[/STRATEGY]", help="only this world, or this strategy in it")
        command.add_argument(
            "--results", type=Path, default=DEFAULT_PATH, help=f"results file (default: {DEFAULT_PATH})"
        )
        if name == "run":
            command.add_argument("--jobs", type=int, default=1, help="local processes (default 1)")
            command.add_argument("--cluster", metavar="ADDRESS", help="address of a Dask scheduler to run on")
            command.add_argument("--tensorboard", type=Path, metavar="DIR", help="log every run for TensorBoard")
    command = add("report", _report, "write everything stored as one HTML file")
    command.add_argument("--results", type=Path, default=DEFAULT_PATH, help=f"results file (default: {DEFAULT_PATH})")
    command.add_argument("--seeds", type=int, help="seeds that were run, if not the default ones")
    command.add_argument("--out", type=Path, default=Path("out/report.html"), help="file (default: out/report.html)")
    command.add_argument("--csv", type=Path, help="write all rows to this file too")
    command = add("tune-guided", _tune, "search guided's schedule with Optuna in a world, yours too")
    command.add_argument("world", help="a known world, or module:function that makes a TabularWorld")
    command.add_argument("--trials", type=int, default=50, help="schedules to try (default 50)")
    command.add_argument("--seeds", type=int, default=10, help="datasets and episodes a schedule (default 10)")
    command.add_argument("--storage", type=Path, help="keep the search in this file, to go on later")
    command = add("show", _show, "draw what the strategies label in a world")
    command.add_argument("world")
    command.add_argument(
        "--labels", type=int, help="number of labels (default: the second published budget, in games 24)"
    )
    command.add_argument("--strategies", nargs="+", help="names of strategies (default: a choice of them)")
    command.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture (default: out)")
    command = add("train-expert", _train_expert, "train the expert of a MinAtar game; run again to go on")
    command.add_argument("game", help=", ".join(GAMES))
    command.add_argument("--steps", type=int, help="steps of training in all (default 3,000,000; --tabular 2,000,000)")
    command.add_argument("--seed", type=int, default=0, help="(default 0)")
    command.add_argument(
        "--tabular", action="store_true", help="a table solved exactly instead of a network (Breakout)"
    )
    command.add_argument("--out", type=Path, default=Path("out/experts"), help="folder (default: out/experts)")
    command = add("experts", _experts, "show the experts that ship with the package, and draw how they learned")
    command.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture (default: out)")
    selector_commands.add_to(add)
    command = add("best", _best, "show the best label sets known in a world")
    command.add_argument("world", help="a world, or all")
    command.add_argument("--learner", choices=("uds", "adapted"), help="only this learner")
    command.add_argument("--labels", type=int, help="only this number of labels")
    command.add_argument("--update", action="store_true", help="search again first, and keep what is better")
    for name, module in (("demo", demo), ("bench", bench)):
        text = (module.__doc__ or "").split("\n")[0]
        command = add(name, lambda options, module=module: module.main(options.rest), text, add_help=False)
        command.set_defaults(rest=[])  # they read their own options, --help among them
    return top


def _chosen(name: str) -> list[Study]:
    studies = find_studies()
    return list(studies.values()) if name == "all" else [studies[check_name("study", name, [*studies, "all"])]]


def _cells(study: Study, options: argparse.Namespace) -> list[Cell]:
    """Return the cells that are asked for."""
    if check_name("solver", options.solver, ("exact", "sampled")) not in study.solvers:
        raise OptionError(f"{study.name} has no {options.solver} solver, only {', '.join(study.solvers)}")
    seeds = study.seeds if options.seeds is None else check_int("--seeds", options.seeds)
    cells = study.cells(seeds, options.solver)
    if options.only:
        world, _, strategy = options.only.partition("/")
        check_name("world", world, dict.fromkeys([*selectenv.WORLDS, *(cell.world for cell in cells)]))
        if strategy and options.study != "all":  # a strategy of some studies may be asked of all
            check_name("strategy", strategy, sorted({cell.strategy for cell in cells}))
        cells = [cell for cell in cells if cell.world == world and strategy in ("", cell.strategy)]
    scales = study.scales if options.scale is None else (check_name("scale", options.scale, SCALES),)
    if scales is not None:
        cells = [cell for cell in cells if cell.settings.get("problem", {}).get("scale", "laptop") in scales]
    return cells


def _list(options: argparse.Namespace) -> None:
    print(table(("study", "question"), [(study.name, study.question.strip()) for study in find_studies().values()]))


def _run(options: argparse.Namespace) -> None:
    check_int("--jobs", options.jobs)
    watch = TensorBoardLog(options.tensorboard).log if options.tensorboard else None
    with ResultsStore(options.results) as store:
        for study in _chosen(options.study):
            try:
                cells = _cells(study, options)
                if study.cpu_hours is not None:
                    left = store.missing(cells)
                    if options.study == "all":
                        hours = study.cpu_hours(left)
                        print(f"{study.name}: NOT RUN, it takes about {hours:.1f} CPU hours: run it by its name")
                        continue
                    print(
                        f"{study.name}: {len(left)} of {len(cells)} cells to run, about {study.cpu_hours(left):.1f} "
                        "CPU hours; stop it at any time, run it again to go on",
                        flush=True,
                    )
                done = run_cells(
                    cells, study.run_cell, store, jobs=options.jobs, cluster=options.cluster, title=study.name,
                    watch=watch,
                )  # fmt: skip
            except (MissingExtraError, OptionError) as error:
                if options.study != "all":
                    raise
                print(f"{study.name}: NOT RUN: {error}", file=sys.stderr)
                continue
            print(f"{study.name}: {done} cells run, {len(cells) - done} were there already; {options.results}")


def _compare(options: argparse.Namespace) -> None:
    for study in _chosen(options.study):
        with ResultsStore(options.results) as store:
            results = store.results(_cells(study, options))
        if not results:
            raise OptionError(
                f"there are no results of {study.name} in {options.results}: run `selectenv run {study.name}`"
            )
        rows = study.rows(results)
        print(f"{study.name}: {study.question.strip()}\n")
        print(comparison_table(rows))
        print("\n" + verdict_counts(rows))


def _report(options: argparse.Namespace) -> None:
    seeds = None if options.seeds is None else check_int("--seeds", options.seeds)
    with ResultsStore(options.results) as store:
        verdicts = report.build(store, options.out, seeds=seeds, csv_path=options.csv)
    if not verdicts:
        raise OptionError(f"there are no results in {options.results}: run `selectenv run all` first")
    lines = [(name, c["agrees"], c["differs"], c["impossible"]) for name, c in verdicts.items()]
    print(table(("study", "agrees", "differs", "impossible"), lines))
    print(f"\nreport: {options.out}")


def _tune(options: argparse.Namespace) -> None:
    default, best, found = tune(options.world, options.trials, options.seeds, options.storage)
    print(f"default schedule: {default:.4f}\nbest of {options.trials}: {best:.4f} with {found}")


def comparison_table(rows: list[Row]) -> str:
    """Return ours beside the published figures."""
    header = ("world", "setting", "labels", "strategy", "figure", "ours", "+-", "gap", "published", "+-", "verdict")
    return table(header, [_shown(row) for row in rows])


def _shown(row: Row) -> tuple[str, ...]:
    def figure(value: float | None) -> str:
        return "" if value is None else f"{value:.3f}"

    ours = (figure(row.ours.mean), figure(row.ours.stderr)) if row.ours else (row.note, "")
    verdict = "" if row.verdict is None else f"{row.verdict.outcome} {row.verdict.reason}".strip()
    return (
        row.world, row.setting, str(row.labels), row.strategy, row.figure, *ours, figure(row.gap),
        figure(row.published), figure(row.published_error), verdict,
    )  # fmt: skip


def verdict_counts(rows: list[Row]) -> str:
    """Return how many published figures agree, strategy by strategy."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        if row.verdict is not None and row.ours is not None:
            counts.setdefault(row.strategy, Counter())[row.verdict.outcome] += 1
    lines = [(name, c["agrees"], c["differs"], c["impossible"], c.total()) for name, c in counts.items()]
    return table(("strategy", "agrees", "differs", "impossible", "published figures"), lines)


SHOWN_IN_GAMES = ("uniform", "visitation", "guided", "terminal", "terminal-guided")
SHOWN = ("uniform", "visitation", "guided", "terminal-guided", "sequential-greedy", "es-200", "swap-search")


def _show(options: argparse.Namespace) -> None:
    world = check_name("world", options.world, selectenv.WORLDS)
    labels = options.labels if options.labels is not None else BUDGETS[world][1] if world in BUDGETS else 24
    drawn, env = {}, selectenv.make_env(world, budget=labels, learner="uds")  # a table draws games in seconds
    for name in options.strategies or (SHOWN if world in BUDGETS else SHOWN_IN_GAMES):
        agent = agents.make(name)
        try:
            agent.train(env)
        except SearchLimitError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        episode = agents.play(env, agent)
        drawn[f"{name}: {episode.performance:.2f}"] = env.labelled_at.copy()
        print(f"{name:<22} {episode.performance:>10.3f}  {', '.join(map(str, episode.ids))}")
    path = options.out / f"{world}-{labels}.png"
    selections_figure(env.problem, drawn, path)
    print(f"\npicture: {path}")


def _train_expert(options: argparse.Namespace) -> None:
    game, seed = check_name("game", options.game, GAMES), check_int("--seed", options.seed, 0)
    folder = options.out / game.lower()
    if options.tabular:
        from experiments.training.table_expert import ROUND_SIZE, ROUNDS, train_tabular_expert

        steps = ROUNDS * ROUND_SIZE if options.steps is None else check_int("--steps", options.steps)
        path = folder / f"{game.lower()}-tabular.npz"
        size = min(ROUND_SIZE, steps)
        if steps % size:
            raise OptionError(f"--steps of a table must be a multiple of {ROUND_SIZE:,}, or less than that")
        folder.mkdir(parents=True, exist_ok=True)
        card = train_tabular_expert(game, path, rounds=steps // size, size=size, seed=seed)
    else:
        from experiments.training.dqn_expert import STEPS, train_expert

        path = folder / f"{game.lower()}.npz"
        card = train_expert(game, STEPS if options.steps is None else options.steps, folder, seed=seed)
    print(f"{game}: return {card['return']:.2f} +- {card['return_error']:.2f} over {card['episodes']} episodes; {path}")


def _experts(options: argparse.Namespace) -> None:
    print(cards_table())
    curves(options.out / "experts.png")
    print(f"\npicture: {options.out / 'experts.png'}")


def _best(options: argparse.Namespace) -> None:
    worlds = WORLDS if options.world == "all" else (check_name("world", options.world, [*WORLDS, "all"]),)
    learners = (options.learner,) if options.learner else ("uds", "adapted")
    if options.update:
        print(f"{update(worlds, learners, options.labels)} entries improved\n")
    rows = []
    for key, entry in best_known().items():
        world, learner, labels = key.split("/")
        if world in worlds and learner in learners and options.labels in (None, int(labels)):
            proof = "optimal" if entry["certified"] else f"within {entry['gap']:.3f}"
            ids = ", ".join(map(str, sorted(entry["ids"])))
            rows.append((world, learner, int(labels), f"{entry['return']:.4f}", proof, entry["found_by"], ids))
    rows.sort(key=lambda row: (WORLDS.index(row[0]), row[1], row[2]))
    print(table(("world", "learner", "labels", "return", "proved", "found by", "states"), rows))


if __name__ == "__main__":
    sys.exit(main())
