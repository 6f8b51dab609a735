"""Results stores with flipped or missing bytes: named errors, never wrong results, and repair."""

import json
import random
import re
import sqlite3

import pytest

from experiments.cli import main as cli
from experiments.engine.cell import RESULTS_VERSION, Cell, Result
from experiments.engine.repair import repair, repair_store
from experiments.engine.store import FORMAT_1_COLUMNS, ResultsStore, intact_rows
from experiments.errors import StoreError, StoreInUseError
from selectenv.errors import OptionError
from tests.damage import attempt, damaged_copies

CELLS = [Cell("study", f"world-{seed % 3}", "strategy", seed, {"budgets": [1, 2]}) for seed in range(80)]


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    """A store with rows on pages of their own, on shared pages and on overflow pages, written in several batches."""
    path, rng = tmp_path_factory.mktemp("store") / "r.sqlite", random.Random(0)
    with ResultsStore(path) as store, store.writing():
        for first in range(0, len(CELLS), 10):
            store.add(
                Result(cell, [{"return": rng.random(), "ids": [*range(rng.choice((3, 30, 3000)))]}], rng.random())
                for cell in CELLS[first : first + 10]
            )
    return path


def content(path):
    with ResultsStore(path) as store:
        return [(result.cell, result.records, result.seconds) for result in store.results(CELLS)]


def outcome(path):
    """Return the results, or None after a named error; whatever else happens fails the test."""

    def read_and_write():
        found = content(path)
        with ResultsStore(path) as store, store.writing():
            assert store.missing(CELLS) == []
            store.add([Result(Cell("study", "world", "new", 0), [{"return": 0.5}], 1.0)])
        return found

    return attempt(read_and_write, StoreError, path)


def test_damage_is_named_and_never_reported_as_a_result(intact, tmp_path):
    truth, raw = content(intact), intact.read_bytes()
    path, noticed = tmp_path / "r.sqlite", 0
    for copy in damaged_copies(raw):
        for old in tmp_path.iterdir():
            old.unlink()
        path.write_bytes(copy)
        found = outcome(path)
        assert found is None or found == truth
        noticed += found is None
    assert noticed > 10


def test_flips_in_the_header_and_in_the_schema(intact, tmp_path):
    """The first page decides how all others are read."""
    truth, raw = content(intact), intact.read_bytes()
    path = tmp_path / "r.sqlite"
    for copy in damaged_copies(raw[:700], seed=1, sample=60):
        for old in tmp_path.iterdir():
            old.unlink()
        path.write_bytes(copy + raw[700:] if len(copy) == 700 else copy)
        assert outcome(path) in (None, truth)


def test_a_changed_row_is_named_and_the_others_are_kept(intact, tmp_path, capsys):
    path = tmp_path / "r.sqlite"
    raw = intact.read_bytes()
    place = raw.index(b'"return": 0.') + len(b'"return": 0.')
    path.write_bytes(raw[:place] + (b"1" if raw[place : place + 1] != b"1" else b"2") + raw[place + 1 :])
    with ResultsStore(path) as store:
        with pytest.raises(
            StoreError, match=r"1 of 80 rows do not match their digests \('study' 'world-\d'/'strategy'"
        ):
            store.results(CELLS)
        with pytest.raises(StoreError, match=re.escape(f"`selectenv repair {path}` keeps the 79 intact rows")):
            store.missing(CELLS)
    assert cli.main(["compare", "heuristics-uds", "--results", str(path)]) == 1
    assert "None of its results is used" in capsys.readouterr().err
    assert cli.main(["repair", str(path)]) == 0
    assert "kept 79 intact rows" in capsys.readouterr().out
    assert (tmp_path / "r.sqlite.damaged-1").exists()
    truth = {cell.key: (records, seconds) for cell, records, seconds in content(intact)}
    kept = content(path)
    assert len(kept) == 79
    assert all(truth[cell.key] == (records, seconds) for cell, records, seconds in kept)
    assert cli.main(["repair", str(path)]) == 0
    assert "nothing to repair" in capsys.readouterr().out


def test_repair_keeps_what_is_intact(intact, tmp_path):
    """One changed byte costs at most the rows of a page; the rest survives even without header and schema."""
    truth, raw = content(intact), intact.read_bytes()
    path = tmp_path / "r.sqlite"
    rng = random.Random(2)
    for place in (0, 5, 16, 100, 105, *(rng.randrange(len(raw)) for _ in range(10))):
        for old in tmp_path.iterdir():
            old.unlink()
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 0x55]) + raw[place + 1 :])
        repair(path)
        kept = content(path)
        assert all(row in truth for row in kept)
        assert len(kept) >= 70


def test_rows_that_are_missing_are_noticed(intact, tmp_path):
    path = tmp_path / "r.sqlite"
    path.write_bytes(intact.read_bytes())
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM results WHERE seed = 7")
    database.close()
    with ResultsStore(path) as store, pytest.raises(StoreError, match="some are missing"):
        store.results(CELLS)
    assert "kept 79" in repair_store(path)
    assert len(content(path)) == 79


def test_replaced_results_keep_the_manifest_right(tmp_path):
    with ResultsStore(tmp_path / "r.sqlite") as store:
        for value in (1, 2):
            store.add([Result(cell, [{"return": value}], 0.0) for cell in CELLS[:5]])
        assert [result.records for result in store.results(CELLS)] == [[{"return": 2}]] * 5
        assert len(store) == 5
    assert len(intact_rows(tmp_path / "r.sqlite")) == 5


def test_an_empty_file_is_damage(tmp_path):
    (tmp_path / "r.sqlite").touch()
    with pytest.raises(StoreError, match="it is empty"):
        ResultsStore(tmp_path / "r.sqlite")


def test_repair_waits_for_nobody(intact, tmp_path):
    path = tmp_path / "r.sqlite"
    path.write_bytes(intact.read_bytes()[:-4096])
    from experiments.engine.store import hold

    with hold(path), pytest.raises(StoreInUseError):
        repair(path)


def test_files_that_cannot_be_repaired(tmp_path):
    with pytest.raises(OptionError, match="cannot be read"):
        repair(tmp_path / "missing.sqlite")
    other = tmp_path / "other.npz"
    other.write_bytes(b"PK\x03\x04" + bytes(5000))
    with pytest.raises(OptionError, match="neither a results store nor a tuning journal"):
        repair(other)


def format_1(path, rows):
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE results (key TEXT PRIMARY KEY, study TEXT NOT NULL, world TEXT NOT NULL, "
            "strategy TEXT NOT NULL, seed INTEGER NOT NULL, settings TEXT NOT NULL, version INTEGER NOT NULL, "
            "records TEXT NOT NULL, seconds REAL NOT NULL)"
        )
        database.executemany(f"INSERT INTO results VALUES ({', '.join('?' * len(FORMAT_1_COLUMNS))})", rows)
        database.execute("PRAGMA user_version = 1")
    database.close()


def test_files_of_format_1_are_upgraded(tmp_path, capsys):
    path = tmp_path / "r.sqlite"
    rows = [
        (c.key, c.study, c.world, c.strategy, c.seed, json.dumps(c.settings), RESULTS_VERSION, '[{"return": 1}]', 2.0)
        for c in CELLS
    ]
    format_1(path, rows)
    with ResultsStore(path) as store:
        assert [result.records for result in store.results(CELLS)] == [[{"return": 1}]] * len(CELLS)
    assert "upgraded from format 1" in capsys.readouterr().err
    with ResultsStore(path) as store:
        assert len(store) == len(CELLS)
    assert capsys.readouterr().err == ""


def test_damaged_files_of_format_1_are_refused(tmp_path):
    cell = CELLS[0]
    row = (cell.key, cell.study, "other", cell.strategy, cell.seed, "{}", RESULTS_VERSION, "[]", 2.0)
    format_1(tmp_path / "r.sqlite", [row])
    with pytest.raises(StoreError, match="does not belong to its cell"):
        ResultsStore(tmp_path / "r.sqlite")
