"""Check of the table of strategies without evaluator calls against the committed results."""

import json

from experiments.engine.archive import read_archive
from experiments.engine.cell import Cell, Result
from experiments.studies.selectors.zero_call import SIX, UNSEEN, _groups, gaps_of
from experiments.studies.selectors.zero_call_cells import LEARNERS, TEST, USUAL
from tests.markdown_pages import ROOT, Table


def stored_results() -> list[Result]:
    """Return the committed results on data on which `learned` was played."""
    found = [
        Result(Cell(study, world, strategy, seed, json.loads(settings)), json.loads(records), seconds)
        for _, study, world, strategy, seed, settings, _, records, seconds, _ in read_archive(
            ROOT / "docs/archives/zero-call.jsonl.xz"
        )
    ]
    played = {_data(result) for result in found if result.cell.strategy == "learned"}
    return [result for result in found if _data(result) in played]


def _data(result: Result) -> tuple[str, int, str, str]:
    settings = result.cell.settings
    return result.cell.world, result.cell.seed, settings["learner"], settings["variant"]


def check_zero_call(table: Table) -> None:
    gaps, _ = gaps_of(stored_results())
    gaps |= _groups(gaps)
    places = [(learner, USUAL, world) for world in (SIX, UNSEEN, TEST) for learner in LEARNERS]
    for name, _, datasets, *shown in table.rows:
        for place, cell in zip(places, shown, strict=True):
            found = gaps[place].get(name)
            expected = "" if found is None else f"{found.summed.mean():.2f} ({found.per_budget.mean():.2f})"
            assert cell == expected, (name, place)
        assert {len(gaps[place][name].summed) for place in places[:4]} == {int(datasets)}
    assert {len(gaps[place][name].summed) for place in places[4:] for name in ("auto", "learned")} == {100}


def check_learned_by_world(table: Table) -> None:
    """The table of docs/selectors.md: one row per rule and selector, one column per world."""
    gaps, _ = gaps_of(stored_results())
    gaps |= _groups(gaps)
    for rule, name, *shown in table.rows:
        worlds = [*table.header[2:8], SIX, TEST]
        found = [gaps[rule.lower(), USUAL, world][name.strip("`")].summed.mean() for world in worlds]
        assert shown == [f"{gap:.2f}" for gap in found], (rule, name)
