"""The policy of a session: its table, its files, and states by id, by columns and by vector."""

import csv

import polars as pl
import pytest

import selectenv
from selectenv.errors import FileError, SessionFileError, UnknownNameError, UnknownStateError, WeightsFileError
from tests.selectenv.datasets.logs import ROLES, TRIPS
from tests.selectenv.labelling.teller import answer_with, town


@pytest.fixture
def policy():
    session = selectenv.LabellingSession(selectenv.from_dataframe(pl.DataFrame(TRIPS), **ROLES), "terminal", 2)
    answer_with(session, 1)
    return session.policy()


def test_states_by_their_columns(policy, tmp_path):
    again = selectenv.load_policy(policy.save(tmp_path / "policy.npz"))
    for found in (policy, again):
        for state in ({"place": "lift", "floor": 0}, {"floor": 0, "place": "lift"}):
            assert found.probabilities(state) == found.probabilities("place=lift, floor=0")
        with pytest.raises(UnknownStateError, match=r"no state with id \{'place': 'lift', 'floor': 9\}"):
            found.action({"place": "lift", "floor": 9})
        with pytest.raises(UnknownStateError, match=r"lacks a value for the column 'floor'"):
            found.action({"place": "lift"})
        with pytest.raises(
            UnknownNameError, match=r"unknown column 'flor'; allowed: place, floor. Did you mean 'floor'"
        ):
            found.action({"place": "lift", "floor": 0, "flor": 0})
    with pytest.raises(UnknownStateError):
        selectenv.LabellingSession(town(), "terminal", 1).policy().action({"place": "lift"})


def test_tables_have_the_columns_of_states(policy, tmp_path):
    header = ["state", "place", "floor", "action", "probability", "value", "labelled"]
    frames = [policy.to_frame(), policy.to_frame("polars")]
    assert [list(frame.columns) for frame in frames] == [header, header]
    assert frames[1].rows() == list(policy.rows()) == [tuple(row) for row in frames[0].itertuples(index=False)]
    with open(policy.save(tmp_path / "policy.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["place"], row["floor"]) for row in rows[:2]] == [("hall", "0"), ("hall", "0")]
    with pytest.raises(UnknownNameError, match=r"allowed: pandas, polars"):
        policy.to_frame("dask")


def test_one_line(policy):
    assert repr(policy) == "<StatePolicy: 4 states (2 labelled), 2 actions>"


def test_missing_directories_are_named(policy, tmp_path):
    with pytest.raises(FileError, match=r"there is no directory '.*none'"):
        policy.save(tmp_path / "none" / "policy.npz")
    with pytest.raises(SessionFileError, match=r"there is no directory '.*none'"):
        selectenv.LabellingSession(town(), "terminal", 1, tmp_path / "none" / "labels.sqlite")
    assert not (tmp_path / "none").exists()
    with pytest.raises(WeightsFileError):
        selectenv.load_policy(tmp_path / "policy.npz")
