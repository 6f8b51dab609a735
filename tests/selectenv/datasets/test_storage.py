"""Dataset files with flipped or missing bytes, and the cache directory."""

import sys
from pathlib import Path

import numpy as np
import pytest

import selectenv
from selectenv.datasets import storage
from selectenv.errors import DatasetFileError
from tests.damage import attempt, damaged_copies


@pytest.mark.filterwarnings("ignore")  # NumPy's and zipfile's remarks on damaged headers
@pytest.mark.parametrize(("world", "mapped"), [("Tree", False), ("Tree", True), ("Breakout", True)])
def test_damage_is_named_and_never_used(tmp_path, monkeypatch, world, mapped):
    options = {"dataset_size": 300} if world == "Tree" else {"dataset_size": 500, "cache": False}
    dataset = selectenv.make_problem(world, **options).dataset
    monkeypatch.setattr(storage, "MAPPED_BYTES", 64 if mapped else 1 << 20)
    raw = storage.save(dataset, tmp_path / "whole.npz").read_bytes()
    noticed = 0
    for number, copy in enumerate(damaged_copies(raw, sample=32)):
        path = tmp_path / f"{number}.npz"  # not one file again and again: mapped arrays would change with it
        path.write_bytes(copy)
        found = attempt(lambda path=path: storage.load(path), DatasetFileError, path)
        if found is not None:
            assert found.fingerprint == dataset.fingerprint
            assert dict(found.spec) == dict(dataset.spec)
            assert found.n_actions == dataset.n_actions
        noticed += found is None
        path.unlink()
    assert noticed > 16


def test_header_entries_are_part_of_the_digest(tmp_path):
    dataset = selectenv.make_problem("Tree", dataset_size=300).dataset
    path = storage.save(dataset, tmp_path / "d.npz")
    with np.load(path) as file:
        members = {name: file[name] for name in file.files}
    text = str(members["header"])
    for old, new in (('"n_actions": 2', '"n_actions": 3'), ('"size": 300', '"size": 301')):
        assert old in text
        np.savez(path, **{**members, "header": np.array(text.replace(old, new))})
        with pytest.raises(DatasetFileError, match="does not match its hash"):
            storage.load(path)


def test_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("SELECTENV_CACHE", str(tmp_path))
    assert storage.cache_folder() == tmp_path
    monkeypatch.delenv("SELECTENV_CACHE")
    assert storage.cache_folder().name in ("selectenv", "Cache")
    if sys.platform == "linux":
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        assert storage.cache_folder() == Path.home() / ".cache" / "selectenv"
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert storage.cache_folder() == tmp_path / "selectenv"
