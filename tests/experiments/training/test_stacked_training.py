"""Training of auto: chunks of decisions are stored, and a run that was interrupted gives the same network."""

from dataclasses import replace

import numpy as np
import pytest

import agents

pytest.importorskip("torch")

from agents.imagine.stacked_features import STACKED_NAMES
from agents.imagine.stacked_network import INPUTS, columns_of, read_stacked, stacked_scores
from experiments.training.stacked_decisions import Decisions, play_decisions
from experiments.training.stacked_training import StackedSettings, fit_correction, merged, train_stacked
from selectenv.errors import OptionError, WeightsFileError

SMALL = StackedSettings(chunks=2, decisions=8, first=1, refit=1, updates=4, batch=4, members=2)


def test_training_resumes_and_repeats(tmp_path):
    train_stacked(tmp_path / "one.npz", SMALL)
    first = tmp_path / "one" / "000.npz"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "000.npz").write_bytes(first.read_bytes())
    train_stacked(tmp_path / "other.npz", SMALL)
    one, other = (read_stacked(tmp_path / f"{name}.npz")[0] for name in ("one", "other"))
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert agents.make("auto", weights=str(tmp_path / "one.npz")).card["seed"] == 0
    with pytest.raises(WeightsFileError, match="belongs to another run"):
        train_stacked(tmp_path / "other.npz", SMALL, seed=1)


def test_processes_do_not_change_the_network(tmp_path):
    settings = replace(SMALL, chunks=3, first=2, decisions=4)
    for jobs in (1, 2):
        train_stacked(tmp_path / f"{jobs}.npz", settings, jobs=jobs)
    one, other = (read_stacked(tmp_path / f"{jobs}.npz")[0] for jobs in (1, 2))
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_a_fit_lowers_the_loss():
    decisions = play_decisions(0, 30, None, seed=7)
    assert all(len(x) == len(g) for x, g in zip(decisions.features, decisions.gains, strict=True))
    start, end = (
        fit_correction(decisions, StackedSettings(updates=updates, batch=16, averaging=0.0)) for updates in (1, 200)
    )
    assert not np.array_equal(start["outer.weight"], end["outer.weight"])
    assert isinstance(decisions, Decisions)


def test_merged_networks_give_the_mean_of_their_scores():
    decisions = play_decisions(1, 10, None, seed=7)
    members = [fit_correction(decisions, StackedSettings(hidden=5, updates=20, batch=8), seed) for seed in range(3)]
    columns = columns_of(list(INPUTS))
    features = np.random.default_rng(0).uniform(-1, 1, (12, len(STACKED_NAMES))).astype(np.float32)
    wanted = np.mean([stacked_scores(member, columns, features) for member in members], axis=0)
    np.testing.assert_allclose(stacked_scores(merged(members), columns, features), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{"chunks": 0}, {"hidden": 0}, {"rate": 0.0}, {"dropout": 1.0}, {"decay": -1.0}])
def test_invalid_settings(options):
    with pytest.raises(OptionError):
        StackedSettings(**options)
