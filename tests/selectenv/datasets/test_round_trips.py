"""Datasets to data frames and files, and back."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import selectenv
from selectenv import datasets
from selectenv.datasets import storage
from selectenv.errors import DatasetError, DatasetFileError, OptionTypeError, UnknownNameError
from tests.selectenv.datasets.logs import ROLES, TRIPS, episodes

BACK = {
    "action": "action",
    "episode": "episode",
    "time": "step",
    "terminated": "terminated",
    "truncated": "truncated",
}


def log():
    return selectenv.from_dataframe(pl.DataFrame(TRIPS), **ROLES)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@given(episodes(), st.booleans())
def test_to_frame_and_back(library, found, rewarded):
    if rewarded:
        found = [{**one, "rewards": np.linspace(-1, 1, len(one["actions"]))} for one in found]
    data = selectenv.from_episodes(found)
    frame = data.to_frame(library)
    assert list(frame.columns) == [
        *("episode", "step", "state", "action", "next_state", "terminated", "truncated"),
        *(["reward"] if rewarded else []),
    ]
    roles = {**BACK, "state": "state", "next_state": "next_state", "reward": "reward" if rewarded else None}
    back = selectenv.from_dataframe(frame, **roles)
    assert back.fingerprint == data.fingerprint


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_states(library):
    data = log()
    frame = data.to_frame(library)
    assert list(frame.columns)[2:7] == ["place", "floor", "action", "next_place", "next_floor"]
    assert [next(iter(frame[name])) for name in ("place", "floor", "action", "next_place")] == ["lift", 1, "go", "hall"]
    back = selectenv.from_dataframe(frame, state=["place", "floor"], next_state=["next_place", "next_floor"], **BACK)
    assert back.fingerprint == data.fingerprint


def test_columns_with_names_of_other_columns():
    data = selectenv.from_dataframe(pl.DataFrame(TRIPS), state=["action", "place"], action="floor", episode="trip")
    assert list(data.to_frame("polars").columns)[2:5] == ["state_action", "place", "action"]


def test_worlds_and_large_ids():
    data = selectenv.make_problem("Graph", dataset_size=50).dataset
    frame = data.to_frame()
    assert frame["state"].tolist() == data.ids[data.state].tolist()
    assert frame["action"].tolist() == data.action.tolist()
    assert frame["next_state"].isna().tolist() == (data.next_state < 0).tolist()
    assert frame["reward"].tolist() == data.hidden_reward.tolist()
    assert "reward" not in data.without_rewards.to_frame().columns
    large = selectenv.from_arrays(np.array([2**63, 1], np.uint64), [0, 1], np.array([1, 5], np.uint64), [False, True])
    assert large.to_frame()["state"].tolist() == [2**63, 1]


def test_to_frame_of_another_library():
    with pytest.raises(UnknownNameError, match="allowed: pandas, polars"):
        log().to_frame("dask")


def test_files_keep_names(tmp_path):
    data = log()
    path = datasets.save(data, tmp_path / "log.npz")
    back = datasets.load(path)
    assert back.fingerprint == data.fingerprint
    assert back.action_names.tolist() == ["go", "stop"]
    assert {name: values.tolist() for name, values in back.state_columns.items()} == {
        name: values.tolist() for name, values in data.state_columns.items()
    }
    assert back.summary == data.summary
    assert back.without_rewards.action_names is back.action_names


@given(episodes())
def test_files_of_any_log(tmp_path_factory, found):
    data = selectenv.from_episodes(found)
    back = datasets.load(datasets.save(data, tmp_path_factory.mktemp("files") / "log.npz"))
    assert (back.fingerprint, back.spec, back.n_actions) == (data.fingerprint, data.spec, data.n_actions)


def test_versions_of_files(tmp_path):
    plain = selectenv.from_arrays([0, 1], [0, 1], [1, 0], [False, True])
    for data, version in ((plain, 2), (log(), 3)):
        with np.load(datasets.save(data, tmp_path / "log.npz")) as file:
            assert f'"version": {version}' in str(file["header"])
    with np.load(tmp_path / "log.npz") as file:
        members = {name: file[name] for name in file.files}
    members["action_names"] = members["action_names"][::-1]
    np.savez(tmp_path / "log.npz", **members)
    with pytest.raises(DatasetFileError, match="does not match its hash"):
        storage.load(tmp_path / "log.npz")


@pytest.mark.parametrize(
    "names",
    [["a", "b"], np.array(["a"]), np.array(["a", "a"]), np.array([0.5, 1.5]), np.array([["a", "b"]])],
    ids=str,
)
def test_names_of_actions_are_checked(names):
    data = log()
    with pytest.raises(DatasetError, match="action_names"):
        selectenv.OfflineDataset(**{**arrays(data), "action_names": names})


def arrays(data):
    names = ("ids", "n_actions", "state", "action", "next_state", "terminated", "truncated", "episode_start")
    return {name: getattr(data, name) for name in names} | {"hidden_reward": None}


def test_columns_of_states_are_checked():
    data = log()
    for wrong in ({"a": [1, 2]}, {"a": np.zeros(4)}, {"a": np.zeros(3, int)}, {3: np.zeros(4, int)}):
        with pytest.raises(DatasetError, match="state_columns"):
            selectenv.OfflineDataset(**arrays(data), state_columns=wrong)
    with pytest.raises(OptionTypeError, match="state_columns"):
        selectenv.OfflineDataset(**arrays(data), state_columns=[1])
