"""The commands around worlds: show what strategies label, the best label sets known, and the shipped experts."""

import argparse
import sys
from pathlib import Path
from typing import Any

import agents
import selectenv
from agents.errors import SearchLimitError
from experiments.analysis.animations import animate_episodes
from experiments.analysis.best_known import best_known, find_best, update
from experiments.analysis.figures import selections_figure
from experiments.cli.commands import OWN_STRATEGY, OWN_WORLD, AddCommand
from experiments.cli.tables import WIDTH, table
from experiments.engine.own_cells import budgets_of, is_own_world
from experiments.engine.problems import problem
from experiments.protocol.budgets import WORLDS
from experiments.training.expert_cards import cards_table, curves, mixtures_table
from selectenv.checks import check_name
from selectenv.env import RewardSelectionEnv
from selectenv.errors import OptionError
from selectenv.io.progress import progress
from selectenv.worlds import CONTROL, find_world

Entries = dict[tuple[str, str, int], dict[str, Any]]
"""World, learner and number of labels -> the best label set known."""
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
            "show Tree --strategies my_module:MyStrategy model.zip": "draw strategies of your own",
            "show my_module:my_world": "draw the default strategies in a world of your own",
            "show Tree --strategies uniform guided --animate": "also write their episodes as an animated GIF",
        },
    )
    command.add_argument("world", help=f"name of a world (see `selectenv list worlds`); {OWN_WORLD}")
    command.add_argument(
        "--labels", type=int, help="number of labels (default: the second published budget; 24 in games)"
    )
    command.add_argument(
        "--strategies", nargs="+", help=f"names of strategies (default: a selection of them); {OWN_STRATEGY}"
    )
    command.add_argument("--animate", action="store_true", help="also write an animated GIF, one frame per label")
    command.add_argument("--out", type=Path, default=Path("out"), help="directory of the figure (default: out)")
    command = add(
        "best",
        _best,
        "show the best label sets known in a world, and whether they are proved optimal",
        {
            "best CliffWalk": "all budgets and both rules",
            "best Tree --learner uds --labels 9 --update": "search again first",
            "best my_module:my_world --labels 3": "search in a world of your own",
            "best Tree --labels 9 --strategies my_module:MyStrategy": "also show the gap of a strategy of your own",
        },
    )
    command.add_argument("world", help=f"name of a tabular world, or all; {OWN_WORLD}")
    command.add_argument("--learner", choices=("uds", "adapted"), help="only this rule")
    command.add_argument("--labels", type=int, help="only this number of labels")
    command.add_argument("--update", action="store_true", help="search again first, and keep what is better")
    command.add_argument(
        "--strategies", nargs="+", default=[], help=f"also play these strategies and show their gaps; {OWN_STRATEGY}"
    )
    command = add(
        "experts",
        _experts,
        "show the experts that ship with the package, and draw their learning curves",
        {"experts": "print their returns and write out/experts.png and out/control-experts.png"},
    )
    command.add_argument("--out", type=Path, default=Path("out"), help="directory of the figure (default: out)")


def _show(options: argparse.Namespace) -> None:
    world = options.world
    tabular = find_world(world, {}).family == "tabular"
    labels = options.labels if options.labels is not None else budgets_of(world)[:2][-1] if tabular else 24
    # Games are drawn with a table, which learns in seconds.
    drawn, episodes, env = {}, {}, selectenv.make_env(world, budget=labels, learner="uds")
    for name in options.strategies or (SHOWN if tabular else SHOWN_IN_GAMES):
        agent = agents.make(name)
        try:
            agent.train(env)
        except SearchLimitError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        episode = agents.play(env, agent)
        episodes[name] = drawn[f"{name}: return {episode.performance:.2f}"] = env.labelled_at.copy()
        print(f"{name:<22} {episode.performance:>10.3f}  {', '.join(map(str, episode.ids))}", flush=True)
    path = options.out / f"{world.replace(':', '-')}-{labels}.png"
    title = f"{world}, {labels} label{'s' * (labels != 1)}"
    selections_figure(env.problem, drawn, path, title)
    print(f"\nfigure: {path}")
    if options.animate:
        animate_episodes(env.problem, episodes, path.with_suffix(".gif"), title)
        print(f"animation: {path.with_suffix('.gif')}")


def _best(options: argparse.Namespace) -> None:
    learners = (options.learner,) if options.learner else ("uds", "adapted")
    entries = _own_entries(options, learners) if is_own_world(options.world) else _known_entries(options, learners)
    if not entries:
        raise OptionError(f"no label sets of {options.labels} labels are known; --update searches for them")
    rows: list[tuple[Any, ...]] = []
    for (world, learner, labels), entry in entries.items():
        proof = "optimal" if entry["certified"] else f"within {entry['distance_to_bound']:.3f}"
        ids = ", ".join(map(str, sorted(entry["ids"])))
        gap = [""] if options.strategies else []
        rows.append((world, learner, labels, f"{entry['return']:.4f}", *gap, proof, entry["found_by"], ids))
        for name in options.strategies:
            env = RewardSelectionEnv(problem(world, {"learner": learner}), labels)
            agent = agents.make(name)
            agent.train(env)
            episode = agents.play(env, agent)
            assert episode.performance is not None
            behind = entry["return"] - episode.performance
            ids = ", ".join(map(str, sorted(episode.ids)))
            rows.append((world, learner, labels, f"{episode.performance:.4f}", f"{behind:.3f}", "", name, ids))
    columns = ("gap", "proved") if options.strategies else ("proved",)
    print(table(("world", "learner", "labels", "return", *columns, "found by", "states"), rows, WIDTH))


def _known_entries(options: argparse.Namespace, learners: tuple[str, ...]) -> Entries:
    """Return the best known sets of the published worlds, after a new search if that is asked for."""
    worlds = WORLDS if options.world == "all" else (check_name("world", options.world, [*WORLDS, "all"]),)
    if options.update:
        print(f"{update(worlds, learners, options.labels)} entries improved\n")
    found = {}
    for key, entry in best_known().items():
        world, learner, labels = key.split("/")
        if world in worlds and learner in learners and options.labels in (None, int(labels)):
            found[world, learner, int(labels)] = entry
    return dict(sorted(found.items(), key=lambda item: (WORLDS.index(item[0][0]), *item[0][1:])))


def _own_entries(options: argparse.Namespace, learners: tuple[str, ...]) -> Entries:
    """Search for the best sets of a user-defined world; they are shown and not stored."""
    budgets = budgets_of(options.world) if options.labels is None else (options.labels,)
    work = [(options.world, learner, labels) for learner in learners for labels in budgets]
    return {task: find_best(*task) for task in progress(work, len(work), "best known")}


def _experts(options: argparse.Namespace) -> None:
    print(cards_table())
    print("\nunique states (reward) of 1,000,000 transitions, by the share of random actions:\n")
    print(mixtures_table())
    path, control = options.out / "experts.png", options.out / "control-experts.png"
    curves(path)
    curves(control, tuple(CONTROL))
    print(f"\nfigures: {path}, {control}")
