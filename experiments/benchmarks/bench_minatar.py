"""Benchmark of MinAtar worlds: collecting, deduplicating images, learning, evaluating, and many labels."""

import time

import numpy as np

import agents
import selectenv
from experiments.benchmarks.timing import best_of
from experiments.cli.tables import table
from selectenv.datasets.images import deduplicate
from selectenv.datasets.minatar_collection import collect_play, play_spec
from selectenv.domains.minatar.experts import load_expert
from selectenv.domains.minatar.games import Games, MinAtarWorld, stream_keys
from selectenv.env import RewardSelectionEnv
from selectenv.evaluation import Evaluator, GameReturns
from selectenv.learners import make_learner
from selectenv.problem import SelectionProblem

SIZE = 1_000_000
LABELS = 700_000
EPISODES = 50
VECTORS = 100
"""Label sets per iteration of es-1000, which has ten iterations."""


def bench_minatar() -> None:
    """Print the times of Breakout at the paper's scale, and of labels in a world of a million states."""
    world = MinAtarWorld("Breakout")
    expert = load_expert(world)
    spec = play_spec(world, expert_share=0.5, mixture="all", expert=expert, size=SIZE, seed=0)
    collect_play(world, {**spec, "size": 300}, expert)  # compile first
    rows: list[tuple[str, str, str, str]] = []

    def row(what: str, value: float, limit: float, unit: str, *, more_is_better: bool = False) -> None:
        ratio = value / limit if more_is_better else limit / value
        rows.append((what, f"{value:,.3g}" if value < 1000 else f"{value:,.0f}", f"{limit:,g} {unit}", f"{ratio:.1f}"))

    began = time.perf_counter()
    data = collect_play(world, spec, expert)
    rate = SIZE / (time.perf_counter() - began)
    row("collecting with the expert, half of the actions", rate, 50_000, "transitions/s", more_is_better=True)
    row("stepping the games alone", _stepping(world), 50_000, "steps/s", more_is_better=True)
    assert data.images is not None
    words = data.images.words[data.state]
    row(f"deduplicating {SIZE:,} images", best_of(3, lambda: deduplicate(words)), 0.5, "s")
    learner, engine = make_learner(), GameReturns(world, data, EPISODES)
    rng = np.random.default_rng(0)
    labels = rng.random(data.n_states) < 0.5
    learner.fit(data, data.all_rewards, labels)
    seconds = best_of(3, lambda: learner.fit(data, data.all_rewards, labels))
    row("one exact fit to labels (UDS)", seconds, 0.15, "s")
    adapted = make_learner("adapted")
    seconds = best_of(3, lambda: adapted.fit(data, data.all_rewards, labels))
    row("one exact fit to labels (adapted)", seconds, 0.15, "s")
    problem = SelectionProblem(data, learner, Evaluator(engine))
    everything = np.ones(data.n_states, bool)

    def call() -> None:
        SelectionProblem(data, learner, Evaluator(engine)).performance(everything)

    row(f"the same with {EPISODES} episodes", best_of(3, call), 0.4, "s")
    masks = rng.random((VECTORS, data.n_states)) < 0.5
    row("es-1000 (ten times one iteration)", 10 * best_of(1, lambda: problem.performance_many(masks)), 300, "s")
    env = RewardSelectionEnv(problem, 0.9, labels_per_refit=0.02)
    row("guided, 90 % of the states, 45 refits", best_of(1, lambda: agents.play(env, agents.make("guided"))), 60, "s")
    row(f"{LABELS:,} labels in a world of {SIZE:,} states", _many_labels(), 60, "s")
    print(f"\nBreakout, {SIZE:,} transitions, {data.n_states:,} states\n")
    print(table(("part", "here", "limit", "times better"), rows))


def _stepping(world: MinAtarWorld) -> float:
    """Return steps per second of 128 games with random actions."""
    games = Games(world, stream_keys(128, 0))
    actions = np.random.default_rng(0).integers(world.n_actions, size=(200, 128))
    return actions.size / best_of(1, lambda: [games.step(row) for row in actions])


def _many_labels() -> float:
    """Return the seconds of one episode of `LABELS` labels, with one refit per 2 % of the states."""
    states = np.arange(SIZE)
    data = selectenv.from_arrays(states, states % 2, states + 1, states % 100 == 99, (states % 100 == 99).astype(float))
    env = RewardSelectionEnv(selectenv.make_problem(dataset=data), LABELS, labels_per_refit=0.02)
    return best_of(1, lambda: agents.play(env, agents.make("visitation-on-policy")))
