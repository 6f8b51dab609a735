"""The spread over experts: kept weights by their content, networks shared with other studies, and the sentence."""

import shutil
from dataclasses import replace

import pytest

from experiments.engine.cell import Result
from experiments.studies import training_checkpoints
from experiments.studies.breakout import breakout_experts, kept_experts
from experiments.studies.breakout.breakout_experts import NAME, STUDY, cpu_hours, expert_of, random_share
from experiments.studies.breakout.kept_experts import KeptExpert, update_marks, weights_path
from experiments.studies.game_episodes import expert_file, file_mark
from experiments.studies.minatar.network_cells import POOL, network_cell
from selectenv.datasets import minatar_collection as play
from selectenv.errors import OptionError

FILES = [(seed, frames) for seed in (0, 1) for frames in (1_000_000, 5_000_000)]


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Four kept weights, which are those of the shipped expert, or of the tabular one."""
    folder, marks = tmp_path / "experts", tmp_path / "marks.json"
    for seed, frames in FILES:
        (folder / f"breakout-{seed}").mkdir(parents=True, exist_ok=True)
        source = expert_file("Breakout", "published" if frames > 1_000_000 else "tabular")
        shutil.copy(source, folder / f"breakout-{seed}" / f"weights-{frames}.npz")
    assert update_marks(folder, marks) == 4
    monkeypatch.setenv(kept_experts.VARIABLE, str(folder))
    monkeypatch.setattr(breakout_experts, "kept_experts", lambda: kept_experts.kept_experts(marks))
    monkeypatch.setattr(play, "GAMES_AT_ONCE", 4)
    monkeypatch.setattr(training_checkpoints, "TRAINING", tmp_path / "training")
    return folder


def test_kept_weights_are_known_by_their_content(kept, tmp_path):
    found = kept_experts.kept_experts(tmp_path / "marks.json")
    assert [(expert.seed, expert.frames) for expert in found] == [
        (0, 5_000_000),
        (1, 5_000_000),
        (0, 10**6),
        (1, 10**6),
    ]
    assert found[0] == KeptExpert(0, 5_000_000, file_mark(expert_file("Breakout")))
    assert (found[0].name, found[0].file) == ("seed 0, 5M frames", "breakout-0/weights-5000000.npz")
    assert weights_path(found[0].file, found[0].mark) == str(kept / found[0].file)
    with pytest.raises(OptionError, match="has other weights"):
        weights_path(found[0].file, "other")
    with pytest.raises(OptionError, match=r"SELECTENV_EXPERTS.*train-expert Breakout --seed 7"):
        weights_path("breakout-7/weights-1000000.npz", "any")


def test_cells_do_not_depend_on_where_the_files_are(kept, monkeypatch):
    cells = STUDY.cells(1, "exact")
    monkeypatch.delenv(kept_experts.VARIABLE)
    assert [cell.key for cell in STUDY.cells(1, "exact")] == [cell.key for cell in cells]
    assert str(kept) not in str([cell.settings for cell in cells])
    tables = [cell for cell in cells if cell.study == NAME]
    assert len(tables) == len({cell.key for cell in tables}) == 8
    assert {random_share(cell) for cell in tables} == {0.3, 0.5}
    assert cpu_hours(cells) > cpu_hours(tables) > 0


def test_networks_of_all_shipped_experts():
    pool = [cell for cell in STUDY.cells(3, "exact") if cell.study == POOL]
    shipped = [name for name in breakout_experts.EXPERTS if expert_file("Breakout", name).exists()]
    assert breakout_experts.EXPERTS == ("published", "published-1", "published-2", "published-3", "published-4")
    assert [(cell.seed, random_share(cell), expert_of(cell)) for cell in pool] == [
        (seed, share, name) for seed in range(3) for share in (0.5, 0.3) for name in shipped
    ]
    assert pool[0].key == network_cell("Breakout", "full labels", 0, "paper").key


def test_tables_and_networks_run(kept):
    cells = STUDY.cells(1, "exact")
    tables = [cell for cell in cells if cell.study == NAME and cell.strategy.endswith("5M frames")]
    results = []
    for cell in [cells[0], *tables]:
        options = {key: value for key, value in cell.settings["problem"].items() if key != "scale"}
        few = {"dataset_size": 2_400, "rollouts": 2} | ({"updates": 3, "evaluations": 2} if cell.study == POOL else {})
        tiny = replace(cell, settings={**cell.settings, "problem": {**options, **few}})
        results.append(Result(cell, STUDY.run_cell(tiny), 0.1))
    rows = STUDY.rows(results)
    assert [(row.strategy, row.setting, row.metric) for row in rows] == [
        ("published", "random share 0.5", "return"),
        ("published", "random share 0.5", "last weights"),
        ("seed 0, 5M frames", "random share 0.5", "exact table"),
        ("seed 0, 5M frames", "random share 0.3", "exact table"),
        ("seed 1, 5M frames", "random share 0.5", "exact table"),
        ("seed 1, 5M frames", "random share 0.3", "exact table"),
    ]
    assert [row.published for row in rows[2:4]] == [17.75, 17.82]
    assert rows[2].ours.mean == rows[4].ours.mean  # the same weights
    assert STUDY.findings(rows)[1].startswith("random share 0.3, published 17.82 with full labels: an exact table")
    assert STUDY.figures(results)
    assert STUDY.rows([]) == []
