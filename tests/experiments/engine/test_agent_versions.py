"""Results of an agent are not taken for those of its changed successor."""

import agents
from experiments.engine.agent_versions import VERSION, version_of, with_agent_version
from experiments.engine.cell import Cell
from experiments.engine.own_cells import chosen_cells
from experiments.studies import find_studies


def test_a_new_version_changes_the_cells_of_every_study(monkeypatch):
    studies = find_studies()
    before = {name: {cell.key: cell for cell in study.cells(1, "exact")} for name, study in studies.items()}
    monkeypatch.setattr(agents.AGENTS["guided"].kind, "version", 7)
    changed = set()
    for name, study in studies.items():
        for cell in study.cells(1, "exact"):
            if cell.strategy in ("guided", "guided-on-policy"):  # two names of one class
                assert cell.settings[VERSION] == 7
                assert cell.key not in before[name]
                changed.add(name)
            else:
                assert cell.key in before[name]
    assert {"heuristics-uds", "zero-call", "learned"} <= changed


def test_first_versions_leave_cells_as_they_were():
    cell = Cell("heuristics-uds", "Graph", "guided", 0, {"budget": 3})
    assert with_agent_version(cell) == cell
    assert with_agent_version(cell).key == cell.key


def test_the_versions_of_agents_that_have_changed():
    assert [version_of(name) for name in ("uniform", "learned", "imagine", "auto", "best known")] == [1, 3, 1, 4, None]
    cells = find_studies()["zero-call"].cells(1, "exact")
    versions = {cell.strategy: cell.settings.get(VERSION, 1) for cell in cells}
    assert {name for name, version in versions.items() if version > 1} == {"auto", "learned", "learned-v1"}


def test_ablations_have_the_version_of_their_agent(monkeypatch):
    monkeypatch.setattr(agents.AGENTS["imagine"].kind, "version", 9)
    cells = find_studies()["zero-call"].cells(1, "exact")
    found = {cell.strategy for cell in cells if cell.settings.get(VERSION) == 9}
    assert found == {"imagine", *(cell.strategy for cell in cells if cell.strategy.startswith("imagine "))}


def test_weights_identify_a_selector():
    cell = Cell("learned", "Graph", "learned", 0, {"weights": "seed-1", "mark": "abc"})
    assert with_agent_version(cell) is cell


def test_a_strategy_in_the_place_of_another_has_its_own_version():
    cells = [with_agent_version(Cell("zero-call", "Graph", "learned", 0, {"learner": "uds"}))]
    assert cells[0].settings == {"learner": "uds", VERSION: 3}
    (other,) = chosen_cells(cells, "Graph/agents.heuristics.terminal:Terminal")
    assert other.settings == {"learner": "uds"}
