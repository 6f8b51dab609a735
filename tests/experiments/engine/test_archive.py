import lzma
from pathlib import Path

import pytest

from experiments.cli.main import main
from experiments.engine.archive import add_archive, read_archive, write_archive
from experiments.engine.cell import Cell, Result
from experiments.engine.store import ResultsStore
from experiments.errors import StoreError


def results(study: str, seeds: range) -> list[Result]:
    return [Result(Cell(study, "Tree", "guided", seed, {"b": 2.0}), [{"return": seed / 3}], 2.0) for seed in seeds]


@pytest.fixture
def store(tmp_path):
    with ResultsStore(tmp_path / "results.sqlite") as found:
        found.add(results("one", range(5)) + results("two", range(3)))
        yield found


def test_another_store_gets_the_same_results(store, tmp_path):
    path = tmp_path / "folder" / "archive.jsonl.xz"
    assert write_archive(store, path) == 8
    with ResultsStore(tmp_path / "other.sqlite") as other:
        other.add(results("two", range(2, 4)))
        assert add_archive(other, path) == 7
        assert add_archive(other, path) == 0
        assert len(other) == 9
        assert set(store.rows()) < set(other.rows())
        cells = other.cells("one")
        assert other.results(cells) == store.results(cells) == results("one", range(5))


def test_the_same_results_give_the_same_file(store, tmp_path):
    first, second = tmp_path / "1.xz", tmp_path / "2.xz"
    write_archive(store, first)
    write_archive(store, second, ["two"])
    assert {row[1] for row in read_archive(second)} == {"two"}
    write_archive(store, second)
    assert first.read_bytes() == second.read_bytes()


def test_results_of_another_machine_stay_in_the_archive(store, tmp_path):
    path = tmp_path / "archive.xz"
    with ResultsStore(tmp_path / "other.sqlite") as other:
        other.add(results("three", range(4)))
        write_archive(other, path)
    assert write_archive(store, path) == 12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-20], "is not an archive of results, or is"),
        (lambda data: b"something else", "not an archive"),
        (lambda data: b"", "not an archive"),
        (lambda data: lzma.compress(b""), "not an archive"),
        (lambda data: lzma.compress(b'"selectenv results 9"\n'), "must begin with"),
        (lambda data: lzma.compress(lzma.decompress(data)[:-1]), "cut off"),
        (lambda data: lzma.compress(lzma.decompress(data).replace(b"guided", b"geided", 1)), "1 of 8 rows"),
        (lambda data: lzma.compress(b'"selectenv results 1"\n{"a": 1}\n'), "1 of 1 rows"),
        (lambda data: lzma.compress(b'"selectenv results 1"\n1\n'), "not an archive"),
    ],
)
def test_a_damaged_archive_is_refused_and_adds_nothing(store, tmp_path, change, message):
    path = tmp_path / "archive.xz"
    write_archive(store, path)
    path.write_bytes(change(path.read_bytes()))
    with ResultsStore(tmp_path / "other.sqlite") as other:
        with pytest.raises(StoreError, match=message):
            add_archive(other, path)
        assert len(other) == 0
    before = path.read_bytes()
    with pytest.raises(StoreError, match=message):
        write_archive(store, path)
    assert path.read_bytes() == before


def test_the_command_writes_and_reads(store, tmp_path, capsys):
    path, other = str(tmp_path / "archive.xz"), tmp_path / "other.sqlite"
    assert main(["archive", path, "--study", "one", "--results", str(store.path)]) == 0
    assert "5 results" in capsys.readouterr().out
    assert main(["archive", path, "--read", "--results", str(other)]) == 0
    assert "5 results added" in capsys.readouterr().out
    with ResultsStore(other) as found:
        assert len(found) == 5
    assert main(["archive", path, "--read", "--study", "one", "--results", str(other)]) != 0
    assert "always read as a whole" in capsys.readouterr().err
    assert main(["archive", str(Path(path).with_name("none.xz")), "--read", "--results", str(other)]) != 0
    assert "cannot be read" in capsys.readouterr().err
