"""Files of weights and checkpoints with flipped or missing bytes."""

import json

import numpy as np
import pytest

from selectenv.domains.minatar.experts import FOLDER
from selectenv.errors import WeightsFileError
from selectenv.io.weights import FORMAT_WITHOUT_DIGEST, load_weights, save_weights
from tests.damage import attempt, damaged_copies


def same(one, other):
    arrays, card = one
    return (
        card == other[1]
        and arrays.keys() == other[0].keys()
        and all(array.dtype == other[0][name].dtype for name, array in arrays.items())
        and all(np.array_equal(array, other[0][name]) for name, array in arrays.items())
    )


@pytest.mark.filterwarnings("ignore")  # NumPy's and zipfile's remarks on damaged headers
@pytest.mark.parametrize("compressed", [True, False])
def test_damage_is_named_and_never_used(tmp_path, compressed):
    path, rng = tmp_path / "w.npz", np.random.default_rng(0)
    arrays = {"a": rng.random((8, 5)), "b": rng.integers(9, size=40), "c": np.array(3.5), "text": np.array(["x", "yy"])}
    save_weights(path, arrays, {"steps": 7, "settings": {"rate": 0.1}}, compressed=compressed)
    truth = load_weights(path)
    assert same(truth, (arrays, {"steps": 7, "settings": {"rate": 0.1}}))
    noticed = 0
    for copy in damaged_copies(path.read_bytes(), seed=int(compressed), sample=80):
        path.write_bytes(copy)
        found = attempt(lambda: load_weights(path), WeightsFileError, path)
        assert found is None or same(found, truth)
        noticed += found is None
    assert noticed > 40


def test_the_digest_covers_what_checksums_of_the_archive_do_not(tmp_path):
    """Content that was changed and packed again, as by a faulty copy in memory."""
    path = tmp_path / "w.npz"
    for change in ({"a": np.arange(4.0)}, {"card": np.array('{"format": "selectenv-weights-2", "steps": 8}')}):
        save_weights(path, {"a": np.zeros(4)}, {"steps": 7})
        with np.load(path) as file:
            members = {name: file[name] for name in file.files}
        np.savez(path, **{**members, **change})
        with pytest.raises(WeightsFileError, match="does not match its digest"):
            load_weights(path)
    np.savez(path, **{name: array for name, array in members.items() if name != "digest"})
    with pytest.raises(WeightsFileError, match="does not match its digest"):
        load_weights(path)


def test_shipped_files_without_a_digest_load():
    path = FOLDER / "breakout-tabular.npz"
    arrays, _ = load_weights(path)
    assert arrays
    with np.load(path) as file:
        assert json.loads(str(file["card"]))["format"] == FORMAT_WITHOUT_DIGEST
