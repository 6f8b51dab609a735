"""Checks of the tables about MinAtar games and control worlds."""

import json
from collections import defaultdict

import numpy as np

import selectenv
from experiments.analysis.statistics import summarise
from experiments.engine.archive import read_archive
from experiments.protocol.published import unique_states
from experiments.studies.breakout.breakout_experts import published_full
from experiments.training.expert_cards import shipped_cards
from experiments.training.expert_returns import RANDOM_SHARES
from selectenv.domains.gym_experts import load_gym_expert
from selectenv.domains.minatar.experts import load_expert
from selectenv.domains.minatar.games import GAMES, MinAtarWorld
from selectenv.worlds import WORLDS
from tests.docs_results import ALL_TABLES, published_games, same, same_with_error, select
from tests.markdown_pages import ROOT, Table
from tests.stress import repetitions

PUBLISHED_STATES = {"Breakout": 13_731, "Freeway": 749_824, "Seaquest": 601_543, "Asterix": 480_185}


def game_rows() -> tuple[tuple[str, ...], ...]:
    return next(table.rows for table in ALL_TABLES if table.header[:3] == ("id", "actions", "channels"))


def check_games(table: Table) -> None:
    assert [row[0] for row in table.rows] == [f"`{selectenv.env_id(name)}`" for name in GAMES]
    for name, row in list(zip(GAMES, table.rows, strict=True))[: repetitions(1, len(GAMES))]:
        assert f"{selectenv.make_problem(name).n_states:,}" == row[3]
    for name, (_, actions, channels, _, published, earned) in zip(GAMES, table.rows, strict=True):
        game = MinAtarWorld(name)
        card = load_expert(game).card
        assert WORLDS[name].defaults.learning.fast.transitions == 1_000_000
        assert (game.n_actions, game.shape[2]) == (int(actions), int(channels))
        assert published == f"{PUBLISHED_STATES[name]:,}"
        assert earned == f"{card['return']:.1f} +- {card['return_error']:.1f}"


def check_experts(table: Table) -> None:
    cards = {name: card for (game, name), card in shipped_cards().items() if game == "Breakout" and "mixtures" in card}
    *ours, published = table.rows
    assert [row[0] for row in ours] == [f"`{name}`, seed {card['seed']}" for name, card in cards.items()]
    for row, card in zip(ours, cards.values(), strict=True):
        assert row[1] == f"{card['return']:.1f} +- {card['return_error']:.1f}"
        found = {share: (int(states), reward) for share, states, reward in card["mixtures"]}
        assert row[2:7] == tuple(f"{found[share][0]:,}" for share in RANDOM_SHARES)
        assert row[7] == f"{found[0.5][1]:,.0f}"
    counts = unique_states()
    assert published == ("published", "", *(f"{counts[share]:,}" for share in RANDOM_SHARES), "about 69,700")


def check_full_labels(table: Table) -> None:
    assert [row[0] for row in table.rows] == list(GAMES)
    for game, full, last, of_paper, drawn, likely in table.rows:
        wanted = {"study": "minatar-trained", "world": game, "setting": "paper"}
        for shown, strategy, metric in (
            (full, "full labels", "return"),
            (last, "full labels", "last weights"),
            (drawn, "behaviour cloning", "return"),
            (likely, "greedy cloning", "return"),
        ):
            assert same_with_error(shown, select(**wanted, strategy=strategy, metric=metric)[0])
        in_paper = [row for row in published_games() if row["domain"] == game and not row["feedback"]]
        assert same(of_paper, float(in_paper[0]["mean"]))


def check_control(table: Table) -> None:
    assert [row[0] for row in table.rows] == [f"`{selectenv.env_id(name)}`" for name in selectenv.CONTROL]
    for name, row in zip(selectenv.CONTROL, table.rows, strict=True):
        place = selectenv.CONTROL[name].make()
        card = load_gym_expert(place, "published").card
        counts = f"{place.width}", f"{place.n_actions}", f"{place.spec.max_episode_steps}"
        earned = f"{card['random_return']:.1f}", f"{card['return']:.1f} +- {card['return_error']:.1f}"
        assert row[1:] == (*counts, *earned)


def check_expert_spread(table: Table) -> None:
    """Networks on the data of each expert of Breakout, three runs each, from the committed archive."""
    runs = defaultdict(list)
    for _, _, world, strategy, _, settings, _, records, *_ in read_archive(ROOT / "docs/archives/networks.jsonl.xz"):
        options = json.loads(settings)
        problem = options["problem"]
        if (world, strategy, options["variant"]) == ("Breakout", "full labels", "paper") and "updates" not in problem:
            runs[problem.get("expert", "published"), problem.get("expert_share", 0.5)].append(json.loads(records)[0])
    *ours, published = table.rows
    assert len(runs) == 2 * len(ours)
    assert {len(found) for found in runs.values()} == {3}
    for name, *shown in ours:
        found = [
            summarise(np.array([run[metric] for run in runs[name.strip("`"), share]]))
            for share in (0.5, 0.7)
            for metric in ("return", "last weights")
        ]
        assert shown == [f"{one.mean:.1f} +- {one.stderr:.1f}" for one in found], name
    assert list(published) == ["published", "", f"{published_full(0.5):.2f}", "", f"{published_full(0.3):.2f}"]


def check_few_labels(table: Table) -> None:
    """Guided, visitation and uniform in one run, and the published number of guided."""
    earned: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for _, _, world, strategy, seed, settings, _, records, *_ in read_archive(ROOT / "docs/archives/networks.jsonl.xz"):
        options = json.loads(settings)
        if (seed, options.get("variant")) == (0, "fast") and "expert_share" not in options["problem"]:
            found = [record for record in json.loads(records) if record.get("labels")]
            earned[world, strategy] |= {record["labels"]: record["return"] for record in found}
    published = {
        (row["domain"], f"{100 * float(row['feedback']):.0f} %"): float(row["mean"])
        for row in published_games()
        if row["strategy"] == "guided" and row["feedback"]
    }
    for game, *shown in table.rows:
        for share, cell in zip(table.header[1:], shown, strict=True):
            ours = " / ".join(f"{earned[game, name][share]:.1f}" for name in ("guided", "visitation", "uniform"))
            assert cell == f"{ours} ({published[game, share]:.2f})", (game, share)
