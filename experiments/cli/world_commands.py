"""The commands around worlds: show what strategies label, the best label sets known, and the shipped experts."""

import argparse
import sys
from pathlib import Path

import agents
import selectenv
from agents.errors import SearchLimitError
from experiments.analysis.best_known import best_known, update
from experiments.analysis.figures import selections_figure
from experiments.cli.commands import AddCommand
from experiments.cli.tables import table
from experiments.protocol.budgets import BUDGETS, WORLDS
from experiments.training.expert_cards import cards_table, curves
from selectenv.checks import check_name
from selectenv.errors import OptionError

SHOWN = ("uniform", "visitation", "guided", "terminal-guided", "sequential-greedy", "es-200", "swap-search")
"""Strategies that `show` draws in tabular worlds."""
SHOWN_IN_GAMES = ("uniform", "visitation", "guided", "terminal", "terminal-guided")
"""Strategies that `show` draws in games, where searches take long."""


def add_to(add: AddCommand) -> None:
    """Add the commands to the command line."""
    command = add(
        "show",
        _show,
        "draw which states the strategies label in a world",
        {
            "show CliffWalk --labels 12": "draw the default strategies with 12 labels",
            "show Tree --strategies guided exact": "draw these strategies only",
        },
    )
    command.add_argument("world", help="name of a world (see `selectenv list worlds`)")
    command.add_argument("--labels", type=int, help="number of labels (default: the second published budget, or 24)")
    command.add_argument("--strategies", nargs="+", help="names of strategies (default: a selection of them)")
    command.add_argument("--out", type=Path, default=Path("out"), help="directory of the figure (default: out)")
    command = add(
        "best",
        _best,
        "show the best label sets known in a world, and whether they are proved optimal",
        {
            "best CliffWalk": "all budgets and both rules",
            "best Tree --learner uds --labels 9 --update": "search again first",
        },
    )
    command.add_argument("world", help="name of a tabular world, or all")
    command.add_argument("--learner", choices=("uds", "adapted"), help="only this rule")
    command.add_argument("--labels", type=int, help="only this number of labels")
    command.add_argument("--update", action="store_true", help="search again first, and keep what is better")
    command = add(
        "experts",
        _experts,
        "show the experts that ship with the package, and draw their learning curves",
        {"experts": "print their returns and write out/experts.png"},
    )
    command.add_argument("--out", type=Path, default=Path("out"), help="directory of the figure (default: out)")


def _show(options: argparse.Namespace) -> None:
    world = check_name("world", options.world, selectenv.WORLDS)
    labels = options.labels if options.labels is not None else BUDGETS[world][1] if world in BUDGETS else 24
    # Games are drawn with a table, which learns in seconds.
    drawn, env = {}, selectenv.make_env(world, budget=labels, learner="uds")
    for name in options.strategies or (SHOWN if world in BUDGETS else SHOWN_IN_GAMES):
        agent = agents.make(name)
        try:
            agent.train(env)
        except SearchLimitError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        episode = agents.play(env, agent)
        drawn[f"{name}: {episode.performance:.2f}"] = env.labelled_at.copy()
        print(f"{name:<22} {episode.performance:>10.3f}  {', '.join(map(str, episode.ids))}", flush=True)
    path = options.out / f"{world}-{labels}.png"
    selections_figure(env.problem, drawn, path)
    print(f"\nfigure: {path}")


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
    if not rows:
        raise OptionError(f"no label sets of {options.labels} labels are known; --update searches for them")
    rows.sort(key=lambda row: (WORLDS.index(row[0]), row[1], row[2]))
    print(table(("world", "learner", "labels", "return", "proved", "found by", "states"), rows))


def _experts(options: argparse.Namespace) -> None:
    print(cards_table())
    path = options.out / "experts.png"
    curves(path)
    print(f"\nfigure: {path}")
