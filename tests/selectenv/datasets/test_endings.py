"""Where episodes ended according to the log: kept in the dataset, in files and frames, and in queries."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import selectenv
from selectenv import datasets
from selectenv.datasets.endings import Endings
from selectenv.errors import DatasetError, OptionTypeError
from tests.selectenv.datasets.test_round_trips import BACK

WARD = {
    "ep": [1, 1, 2, 2, 3, 3],
    "place": ["desk", "bed", "desk", "bed", "desk", "bed"],
    "act": ["admit", "treat", "admit", "treat", "admit", "treat"],
    "n": ["bed", "died", "bed", "discharged", "bed", "discharged"],
}
ROLES = {"state": "place", "action": "act", "episode": "ep"}


def ward():
    return selectenv.from_dataframe(pd.DataFrame(WARD), **ROLES, next_state="n")


def outcomes(data, state="bed"):
    session = selectenv.LabellingSession(data, "visitation", data.n_states)
    (query,) = (query for query in session.ask(data.n_states) if query.id == state)
    return session, [(one.next_id, one.ending, one.count, one.terminated) for one in query.transitions]


def test_different_endings_are_different_transitions_of_a_query():
    session, found = outcomes(ward())
    assert found == [(None, "died", 1, 1), (None, "discharged", 2, 2)]
    session.tell("bed", [-10, 1])
    np.testing.assert_array_equal(session.rewards, [np.nan, -10, np.nan, 1, np.nan, 1])
    (label,) = session.labels()
    assert label.transitions == (-10, 1)
    assert label.rewards == {"treat": pytest.approx(-8 / 3)}
    (excerpt, *_) = session.query("bed").episodes
    assert (excerpt.end, excerpt.next_id, excerpt.ending) == ("terminated", None, "discharged")


def test_the_last_row_without_an_action_is_an_ending():
    rows = [(1, "desk", "admit"), (1, "bed", "treat"), (1, "died", None), (2, "bed", "treat"), (2, "discharged", None)]
    data = selectenv.from_dataframe(pd.DataFrame(rows, columns=["ep", "place", "act"]), **ROLES)
    assert outcomes(data)[1] == [(None, "died", 1, 1), (None, "discharged", 1, 1)]
    assert "2 endings (died, discharged)" in data.summary


def test_next_states_without_rows_of_their_own_are_kept(capsys):
    frame = pd.DataFrame({"ep": [1, 1, 1], "place": ["a", "b", "c"], "act": [0, 0, 0], "n": ["b", "z", "d"]})
    data = selectenv.from_dataframe(frame, **ROLES, next_state="n")
    assert outcomes(data, "b")[1] == [(None, "z", 1, 0)]
    assert outcomes(data, "c")[1] == [(None, "d", 1, 1)]
    assert "1 row not followed by the given next state" in capsys.readouterr().err


def test_learners_and_features_do_not_change():
    data = ward()
    bare = replace(data, endings=None, _shared={})
    sessions = [selectenv.LabellingSession(one, "guided", 2, gamma=0.9) for one in (data, bare)]
    for session in sessions:
        while query := session.ask():
            session.tell(query.id, 3)
    assert sessions[0].asked() == sessions[1].asked()
    np.testing.assert_array_equal(sessions[0].policy().values, sessions[1].policy().values)
    assert data.unique_transitions.count.tolist() == bare.unique_transitions.count.tolist() == [3, 3]
    assert bare.outcomes is bare.unique_transitions
    assert (data.n_states, data.fingerprint == bare.fingerprint) == (2, False)


def test_files_and_frames_keep_endings(tmp_path):
    data = ward()
    back = datasets.load(datasets.save(data, tmp_path / "ward.npz"))
    assert back.fingerprint == data.fingerprint
    assert outcomes(back)[1] == outcomes(data)[1]
    for library in ("pandas", "polars"):
        frame = data.to_frame(library)
        again = selectenv.from_dataframe(frame, state="state", next_state="next_state", **BACK)
        assert again.fingerprint == data.fingerprint
    with selectenv.LabellingSession(data, "visitation", 2, tmp_path / "labels.sqlite"):
        pass
    with selectenv.LabellingSession.open(tmp_path / "labels.sqlite") as session:
        session.ask(2)
        assert [one.ending for one in session.query("bed").transitions] == ["died", "discharged"]


def test_endings_of_several_columns(tmp_path):
    frame = pd.DataFrame(WARD | {"day": [1, 2, 1, 2, 1, 2], "next_day": [2, 3, 2, 3, 2, 4]})
    columns = {"state": ["place", "day"], "next_state": ["n", "next_day"]}
    data = selectenv.from_dataframe(frame, **{**ROLES, **columns})
    names = ["place=died, day=3", "place=discharged, day=3", "place=discharged, day=4"]
    assert [one[1] for one in outcomes(data, "place=bed, day=2")[1]] == names
    roles = {"state": ["place", "day"], "next_state": ["next_place", "next_day"]}
    assert selectenv.from_dataframe(data.to_frame(), **roles, **BACK).fingerprint == data.fingerprint
    assert datasets.load(datasets.save(data, tmp_path / "ward.npz")).fingerprint == data.fingerprint


def test_groups_keep_endings(tmp_path):
    groups = selectenv.group_states(ward(), [1, 0])
    assert outcomes(groups, 1)[1] == [(None, "died", 1, 1), (None, "discharged", 2, 2)]
    assert outcomes(datasets.load(datasets.save(groups, tmp_path / "g.npz")), 1)[1] == outcomes(groups, 1)[1]
    assert groups.to_frame()["next_state"].isna().sum() == 3


@pytest.mark.parametrize(
    "wrong",
    [
        Endings(np.zeros(6, np.int64), np.array(["x"])),
        Endings(np.zeros(5, np.int32), np.array(["x"])),
        Endings(np.full(6, 1, np.int32), np.array(["x"])),
        Endings(np.zeros(6, np.int32), np.array(["x"])),
        Endings(np.full(6, -1, np.int32), np.array([0.5])),
        Endings(np.full(6, -1, np.int32), np.array(["x"]), (np.array([1, 2]),)),
    ],
)
def test_endings_are_checked(wrong):
    with pytest.raises(DatasetError, match="ending"):
        replace(ward(), endings=wrong)
    with pytest.raises(OptionTypeError, match="endings must be of type Endings"):
        replace(ward(), endings=[1])
