"""Every table and headline number of the README and of docs/ agrees with the code or with stored results."""

import itertools
import math
import re
from collections.abc import Callable
from statistics import mean

import gymnasium as gym
import numpy as np
import pytest

import agents
import selectenv
from experiments.analysis.best_known import best_known, best_return
from experiments.cli.listings import STRATEGIES
from experiments.protocol.budgets import BUDGETS, FEEDBACK
from experiments.studies import find_studies
from selectenv import options
from selectenv.domains.gym_experts import load_gym_expert
from selectenv.domains.minatar.experts import load_expert
from selectenv.domains.minatar.games import GAMES, MinAtarWorld
from selectenv.domains.tabular.random_worlds import LARGEST, SMALLEST
from selectenv.learners import LEARNERS
from selectenv.worlds import SCALING
from tests.agreement_counts import HEURISTICS, TRAINED, agree_in_words, agreement, judged, told
from tests.control_tables import WORLDS, check_every_group_labelled, check_groups, check_strategies
from tests.docs_game_tables import (
    check_control,
    check_expert_spread,
    check_experts,
    check_few_labels,
    check_full_labels,
    check_games,
    game_rows,
)
from tests.docs_results import ALL_TABLES, average, same, select
from tests.markdown_pages import Table, text_of
from tests.speed_tables import check_scaling, check_single, check_speed, check_training, check_vector
from tests.zero_call_tables import check_learned_by_world, check_zero_call

WITHOUT_CHECKS = ("docs/developing.md", "docs/leaderboard.md", "docs/prediction.md", "docs/public-api.md")
"""Pages whose tables list what a tool found, with reasons in prose, or are checked by tests of their own."""


def check_environments(table: Table) -> None:
    worlds = [re.fullmatch(r"`RewardSelection-(\w+)-v0`", row[0])[1] for row in table.rows]
    known = [env_id.split("-")[1] for env_id in gym.registry if env_id.startswith("RewardSelection-")]
    tabular = {**selectenv.TABULAR, **SCALING}
    assert worlds == (known if table.page == "README.md" else list(tabular))
    for world, (_, states, actions, horizon, _, best) in zip(worlds, table.rows, strict=True):
        if world in tabular:
            problem = selectenv.make_problem(world)
            place = tabular[world].make()
            assert (f"{place.n_states:,}", place.n_actions, place.horizon) == (states, int(actions), int(horizon))
            assert same(best, problem.performance(problem.dataset.labelable))
        elif world in GAMES:
            game = MinAtarWorld(world)
            assert (f"{game.n_actions}", f"{game.horizon}".lower()) == (actions, horizon)
            assert best == f"{load_expert(game).card['return']:.1f} (expert)"
            assert states == next(row[3] for row in game_rows() if world in row[0])
        elif world in selectenv.CONTROL:
            row, place = selectenv.CONTROL[world], selectenv.CONTROL[world].make()
            shown = f"{row.defaults.groups}", f"{place.n_actions}", f"{place.spec.max_episode_steps}"
            assert (states, actions, horizon) == shown
            assert best == f"{load_gym_expert(place, 'published').card['return']:.1f} (expert)"
        else:
            assert (world, states) == ("Random", f"{SMALLEST} to {LARGEST}")


def check_agents(table: Table) -> None:
    assert sorted(row[0].strip("`") for row in table.rows) == sorted(agents.AGENTS)
    for name, closed, training, evaluator, strategy in table.rows:
        agent = agents.make(name.strip("`"))
        assert (agent.taxonomy.test_loop == "closed") == (closed == "yes")
        assert (agent.taxonomy.training, agent.taxonomy.evaluator) == (training, evaluator)
        assert STRATEGIES[agent.name] == f"{strategy[0].upper()}{strategy[1:]}."
        if preset := re.match(r"es with (\d+) iterations of (\d+) sets", strategy):
            assert (agent.iterations, agent.population) == (int(preset[1]), int(preset[2]))


def check_observation(table: Table) -> None:
    space = selectenv.make_env("Graph").observation_space
    assert sorted(row[0].strip("`") for row in table.rows) == sorted(space.keys())


def check_options(table: Table) -> None:
    names = ("environments", "learners", "concepts/evaluator", "minatar")
    pages = " ".join(text_of(f"docs/{page}.md") for page in names)
    for _, name, _ in table.rows:
        for option in getattr(options, name.strip("`")).__dataclass_fields__:
            assert re.search(rf"`{option}\b", pages), f"{option} is not described"


def check_learners(table: Table) -> None:
    assert [row[0].strip("`") for row in table.rows] == list(LEARNERS)


def check_session(table: Table) -> None:
    called = [name for row in table.rows for name in re.findall(r"`(\w+)\(", row[0])]
    assert {"ask", "tell", "policy", "bounds"} <= set(called)
    assert all(callable(getattr(selectenv.LabellingSession, name)) for name in called)


def check_studies(table: Table) -> None:
    questions = {name: " ".join(study.question.split("\n\n")[0].split()) for name, study in find_studies().items()}
    assert {name.strip("`"): question for name, question in table.rows} == questions
    assert [row[0].strip("`") for row in table.rows] == list(questions)


def check_heuristics(table: Table) -> None:
    assert [row[0] for row in table.rows] == list(selectenv.TABULAR)
    for world, *shown in table.rows:
        values = [average(study="heuristics-uds", world=world, strategy=name) for name in table.header[1:]]
        assert all(same(cell, value) for cell, value in zip(shown, values, strict=True))
        bold = [cell.startswith("**") for cell in shown]
        assert bold == [round(value, 2) == round(max(values), 2) for value in values]


VERDICT_ROWS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "brute-force (UDS, adapted)": (("brute-force",), TRAINED),
    "sequential-greedy (UDS, adapted)": (("sequential-greedy",), TRAINED),
    "guided, guided-on-policy, visitation-on-policy": (
        ("guided", "visitation-on-policy"),
        (*HEURISTICS, *TRAINED),
    ),
    "evolution strategies (tables and ablations)": (("es-",), (*TRAINED, "es-iterations", "es-population")),
    "initial random labels (guided, ES)": (("guided", "es-"), ("initial-sample",)),
}


def check_verdicts(table: Table) -> None:
    groups = []
    for name, can_be_told, *counts, _ in table.rows:
        if name in VERDICT_ROWS:
            rows = judged(*VERDICT_ROWS[name])
        else:
            strategy = name.removesuffix(" (UDS, adapted)")
            rows = [row for row in judged((strategy,), HEURISTICS) if row["strategy"] == strategy]
        assert can_be_told == f"{len(told(rows))} of {len(rows)}", name
        assert tuple(counts) == (*agreement(told(rows)), *agreement(rows)), name
        groups.append(rows)
    every, gated = ([row for rows in some for row in rows] for some in (groups, groups[:4]))
    assert not any(row["by the rule"] == "impossible" for row in every)
    page, start = text_of("docs/studies.md"), text_of("README.md")
    can = f"{len(told(every)):,} of the {len(every):,} published numbers can be told from those of other strategies"
    assert f"{can}, and of these {agree_in_words(told(every))}" in page
    assert f"With those that cannot be told, {agree_in_words(every)}; none is impossible" in page
    assert f"{len(told(gated))} of {len(gated)} can be told, and of these {agree_in_words(told(gated))}" in page
    uds = [row for row in judged(("uniform", "visitation"), HEURISTICS[:1]) if "policy" not in row["strategy"]]
    can = f"{len(told(uds))} of the {len(uds)} numbers of uniform and visitation can be told"
    assert f"{can}, and of these {agree_in_words(told(uds))}" in page
    es = judged(("es-",), ("es-iterations", "es-population"))
    assert f"only {len(told(es))} of these {len(es)} cells discriminate" in page
    assert "by the rule alone {} agree; swapped: {}".format(*agreement(es)) in page
    can = f"{len(told(every)):,} of {len(every):,} can be told from those of other strategies"
    assert f"{can}, and of these {agree_in_words(told(every))}" in start
    named = "`uniform`, `visitation`, `brute-force` and `sequential-greedy`"
    assert f"of those of {named} {agree_in_words(told(gated))}; none is impossible" in start


def check_budgets(table: Table) -> None:
    assert table.header[1:] == tuple(map(str, FEEDBACK))
    assert {world: tuple(map(int, labels)) for world, *labels in table.rows} == BUDGETS


def check_exact_facts(table: Table) -> None:
    here = [row[2] for row in table.rows]
    graph, tree, lake = (selectenv.make_problem(name) for name in ("Graph", "Tree", "FrozenLake"))
    best = [int(graph.performance_many(sets(graph, size)).max()) for size in (1, 2, 3, 4)]
    assert here[0].startswith(", ".join(map(str, best)))
    triples = sets(tree, 3)
    returns = tree.performance_many(triples)
    assert tree.states[triples[returns.argmax()]].tolist() == [15, 19, 23]
    assert f"{returns.max():.6f} (all {len(triples):,} sets)" in here[1]
    masks = np.concatenate([sets(lake, size) for size in range(lake.n_states + 1)])
    returns, goal = lake.performance_many(masks), masks[:, lake.actions([14])[0]]
    shown = [f"{value:.6f}" for half in (goal, ~goal) for value in np.unique(returns[half].round(6))]
    assert here[2] == f"{', '.join(shown)} (all {len(masks):,} sets)"
    adapted = [
        selectenv.make_problem("Graph", learner="adapted", dataset_seed=seed).performance([7, 9, 11])
        for seed in range(10)
    ]
    assert here[3] == f"{mean(adapted):.2f} over ten datasets"
    known = [f"{best_return('CliffWalk', 'uds', labels):.2f}" for labels in (12, 18)]
    assert here[4].startswith(", ".join(known))


def sets(problem: selectenv.SelectionProblem, size: int) -> np.ndarray:
    """Return all sets of a size as masks."""
    chosen = list(itertools.combinations(range(problem.n_states), size))
    masks = np.zeros((len(chosen), problem.n_states), bool)
    for mask, states in zip(masks, chosen, strict=True):
        mask[list(states)] = True
    return masks


def check_selectors(table: Table) -> None:
    names = [row[0].strip("*") for row in table.rows]
    summary = {"study": "learned", "world": "six worlds"}
    gaps, costs = (
        {row["strategy"]: row for row in select(**summary, setting="uds", metric=metric)}
        for metric in ("normalised gap", "cost")
    )
    assert sorted(names) == sorted(gaps) == sorted(costs)
    assert [float(gaps[name]["ours"]) for name in names] == sorted(float(row["ours"]) for row in gaps.values())
    for name, (_, cost, *cells) in zip(names, table.rows, strict=True):
        agent = agents.make(name.partition("-without-")[0])
        assert (agent.taxonomy.evaluator == "never") == (cost == "0")
        assert cost == f"{float(costs[name]['ours']):,.0f}"
        for learner, gap, random in zip(("uds", "adapted"), cells[:2], cells[2:], strict=True):
            if not gap:
                assert not any(row["strategy"] == name and row["setting"] == learner for row in select(study="learned"))
                continue
            row = select(**summary, setting=learner, strategy=name, metric="normalised gap")[0]
            shown, _, interval = gap.partition(" (")
            assert same(shown, float(row["ours"]))
            assert bool(interval) == name.startswith("learned")
            if interval:
                ends = zip(interval.strip(")").split(" to "), row["95 % interval"].split(" to "), strict=True)
                assert all(same(bound, float(stored)) for bound, stored in ends)
            if random:
                worlds = [
                    float(row["ours"])
                    for row in select(study="learned", setting=learner, strategy=name, metric="return")
                    if row["world"].startswith("Random ")
                ]
                assert same(random, mean(worlds))


def check_choices(table: Table) -> None:
    """The table of docs/which-strategy.md repeats rows of the table of docs/selectors.md."""
    selectors = next(other for other in ALL_TABLES if other.header[:2] == ("strategy", "cost"))
    known = {row[0].strip("*"): (row[1], *(cell.partition(" (")[0] for cell in row[2:])) for row in selectors.rows}
    for _, name, *cells in table.rows:
        assert known[name.strip("`")] == tuple(cells)
    page = text_of("docs/which-strategy.md")
    _, uds, adapted, *random = known["es-50"]
    assert f"`es-50` leaves a gap of {uds} (UDS) and {adapted} (adapted)" in page
    assert f"In random worlds it earns {random[0]} and {random[1]}" in page
    certified = sum(entry["certified"] for entry in best_known().values())
    assert f"{certified} of the {len(best_known())} best known sets" in page


def check_terms(table: Table) -> None:
    modes = next(here for term, here in table.rows if term == "reward")
    assert tuple(re.findall(r'`"(\w+)"`', modes)) == options.REWARD_MODES


def check_unproved(table: Table) -> None:
    unproved = {name: entry for name, entry in best_known().items() if not entry["certified"]}
    shown = {
        f"{world}/{rule}/{labels}": (sets, earned, distance)
        for world, rule, labels, sets, earned, distance in table.rows
    }
    assert shown.keys() == unproved.keys()
    for name, (sets, earned, distance) in shown.items():
        world, _, labels = name.split("/")
        assert sets == f"{math.comb(selectenv.TABULAR[world].make().n_states, int(labels)):,}"
        assert float(earned) == pytest.approx(unproved[name]["return"], abs=1e-6)
        assert same(distance, unproved[name]["distance_to_bound"])
    proved = len(best_known()) - len(unproved)
    assert f"Of the {len(best_known())} best known sets of the published worlds, rules and budgets, {proved} are" in (
        text_of(table.page)
    )


def check_headlines(table: Table) -> None:
    told = {question: result for question, result, _ in table.rows}
    entries = best_known().values()
    published_five = ("uniform", "visitation", "visitation-on-policy", "guided", "guided-on-policy")
    for study, wins in zip(HEURISTICS, (6, 3), strict=True):
        earned = {
            (world, name): average(study=study, world=world, strategy=name)
            for world in BUDGETS
            for name in (*published_five, "terminal-guided")
        }
        won = [
            world
            for world in BUDGETS
            if earned[world, "terminal-guided"] > max(earned[world, name] for name in published_five)
        ]
        assert len(won) == wins
    certified = sum(entry["certified"] for entry in entries)
    assert told["How many of the best known label sets are proved optimal?"] == f"{certified} of {len(entries)}"
    assert f"Of the {len(entries)} best known label sets, {certified} are proved optimal" in text_of("docs/studies.md")
    gaps = {
        (name, learner): 100
        * float(select(study="learned", world="six worlds", setting=learner, strategy=name)[0]["ours"])
        for name in ("learned", "guided")
        for learner in ("uds", "adapted")
    }
    transfer = told["Does a selector trained on random worlds transfer?"]
    assert [int(share) for share in re.findall(r"(\d+) %", transfer)] == [round(gap) for gap in gaps.values()]
    breakout = told["Does the selector transfer to Breakout?"]
    earned = [
        average(study="learned", world="Breakout", setting=learner, strategy=name)
        for learner, names in (("uds", ("learned", "uniform")), ("adapted", ("learned", "uniform", "guided-on-policy")))
        for name in names
    ]
    assert all(same(shown, value) for shown, value in zip(re.findall(r"\d\.\d", breakout), earned, strict=True))
    speed = next(table for table in ALL_TABLES if table.header[1:2] == ("label sets per second",))
    rates = {row[0]: row[1] for row in speed.rows}
    assert f"{rates['CliffWalk']} (CliffWalk) to {rates['Graph']} (Graph)" in told["How fast is an exact evaluation?"]


CHECKS: dict[tuple[str, ...], Callable[[Table], None] | None] = {
    ("world", "network", "table over 200 groups"): check_every_group_labelled,
    ("expert", "random share 0.5", "last weights", "random share 0.3", "last weights"): check_expert_spread,
    ("strategy", *WORLDS, "CartPole, network", "Acrobot, network"): check_strategies,
    ("groups", *WORLDS): check_groups,
    ("id", "states", "actions", "horizon", "description", "best return"): check_environments,
    ("id", "actions", "channels", "states in 1,000,000 transitions", "published", "expert's return"): check_games,
    ("expert", "greedy return", "0", "0.3", "0.5", "0.7", "1", "reward at 0.5"): check_experts,
    ("id", "columns", "actions", "horizon", "random actions", "expert"): check_control,
    ("agent", "labels depend on earlier ones", "training", "asks the evaluator", "strategy"): check_agents,
    ("key", "meaning"): check_observation,
    ("group", "dataclass", "page"): check_options,
    ("learner", "rule for unlabelled states", "policy", "data"): check_learners,
    ("call", "effect"): check_session,
    ("study", "question"): check_studies,
    (
        "world",
        "uniform",
        "visitation",
        "visitation-on-policy",
        "guided",
        "guided-on-policy",
        "terminal",
        "terminal-guided",
    ): check_heuristics,
    (
        "published numbers",
        "can be told",
        "of these agree",
        "swapped",
        "all agree",
        "all swapped",
        "where they differ",
    ): check_verdicts,
    ("world", "0.1", "0.3", "0.5", "0.7", "0.9"): check_budgets,
    ("fact", "published", "here"): check_exact_facts,
    ("world", "rule", "labels", "sets", "best return known", "distance"): check_unproved,
    (
        "strategy",
        "cost",
        "six worlds, UDS",
        "six worlds, adapted",
        "random worlds, UDS",
        "random worlds, adapted",
    ): check_selectors,
    (
        "situation",
        "strategy",
        "cost",
        "gap, UDS",
        "gap, adapted",
        "random worlds, UDS",
        "random worlds, adapted",
    ): check_choices,
    ("Gymnasium", "here"): check_terms,
    (
        "game",
        "all states labelled",
        "last weights only",
        "published",
        "cloning, drawn",
        "cloning, most likely",
    ): check_full_labels,
    ("world", "label sets per second", "one call of the released code"): check_speed,
    (
        "world",
        "label sets per second",
        "steps per second",
        "share",
        "step of all",
        "learning",
        "occupancy",
        "Python",
        "limit",
    ): check_vector,
    ("world", "steps per second", "before", "times"): check_single,
    (
        "agent",
        "environments",
        "steps per second",
        "times",
        "rollout steps per second",
        "times",
        "updates take",
    ): check_training,
    (
        "states",
        "distinct transitions",
        "world, expert and data",
        "performance call",
        "learned features",
        "limit of both",
        "peak memory",
    ): check_scaling,
    ("question", "result", "details"): check_headlines,
    ("game", "15 %", "30 %", "45 %", "60 %", "75 %", "90 %"): check_few_labels,
    (
        "strategy",
        "calls",
        "datasets",
        "six worlds, UDS",
        "six worlds, adapted",
        "three test worlds, UDS",
        "three test worlds, adapted",
        "100 test random worlds, UDS",
        "100 test random worlds, adapted",
    ): check_zero_call,
    ("version", "random worlds", "FrozenLake", "CliffWalk", "Tree"): None,  # measured while developing, not stored
    ("strategy", "24 random worlds", "Tree", "FrozenLake", "CliffWalk", "FrozenLake 8x8"): None,  # as above
    (
        "selector",
        "24 random worlds",
        "Tree",
        "FrozenLake",
        "CliffWalk",
        "FrozenLake 8x8",
        "FrozenLake 10x10",
        "Tree of depth 7",
    ): None,  # likewise
    ("rule", "selector", *BUDGETS, "six worlds", "test random worlds"): check_learned_by_world,
    ("states chosen by", "labels", "return of the policy"): None,  # test_docs_story.py measures it
    ("key", "effect"): None,  # the tests of the page press the keys
    ("operation", "time"): None,  # measured by `make bench`, not stored
    ("game", "here", "plain PyTorch", "bare matrix products of a dense update"): None,  # likewise
}


@pytest.mark.parametrize("table", [table for table in ALL_TABLES if table.page not in WITHOUT_CHECKS], ids=str)
def test_table_matches_code_and_results(table: Table):
    assert table.header in CHECKS, "a new kind of table needs a check"
    check = CHECKS[table.header]
    if check is not None:
        check(table)


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        ("best only in Graph ({:.2f})", ("Graph", "terminal-guided")),
        ("TwoRoomsTrap ({:.2f};", ("TwoRoomsTrap", "terminal-guided")),
        ("`terminal` {:.2f}) and FrozenLake", ("TwoRoomsTrap", "terminal")),
        ("FrozenLake ({:.2f};", ("FrozenLake", "terminal-guided")),
        ("Tree ({:.2f};", ("Tree", "terminal-guided")),
        ("`guided-on-policy` {:.2f})", ("Tree", "guided-on-policy")),
        ("TwoRooms ({:.2f};", ("TwoRooms", "terminal-guided")),
        ("`uniform` {:.2f},", ("TwoRooms", "uniform")),
        ("`terminal` {:.2f}) and CliffWalk", ("TwoRooms", "terminal")),
        ("CliffWalk ({:.0f};", ("CliffWalk", "terminal-guided")),
        ("`guided` {:.0f})", ("CliffWalk", "guided")),
    ],
)
def test_sentences_about_the_adapted_rule_match_the_results(sentence, wanted):
    value = average(study="heuristics-adapted", world=wanted[0], strategy=wanted[1])
    assert sentence.format(value) in text_of("docs/studies.md")


@pytest.mark.parametrize(
    ("sentence", "strategy", "learner"),
    [
        ("it earns {:.1f}, where `uniform`", "learned", "uds"),
        ("`uniform` earns {:.1f} and", "uniform", "uds"),
        ("`es-50` {:.1f}.", "es-50", "uds"),
        ("Under the adapted rule it earns {:.1f}, more", "learned", "adapted"),
        ("`es-200` ({:.1f})", "es-200", "adapted"),
        ("`uniform` ({:.1f}) and", "uniform", "adapted"),
        ("`guided-on-policy` ({:.1f})", "guided-on-policy", "adapted"),
        ("does better ({:.1f} and", "learned-without-termination", "uds"),
        ("and {:.1f}).", "learned-without-termination", "adapted"),
    ],
)
def test_sentences_about_selectors_in_breakout_match_the_results(sentence, strategy, learner):
    value = average(study="learned", world="Breakout", setting=learner, strategy=strategy)
    assert sentence.format(value) in text_of("docs/selectors.md")
