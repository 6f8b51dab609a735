"""Datasets from data frames, CSV files and Parquet files."""

import gzip
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import selectenv
from selectenv.datasets import log_columns, log_dataset
from selectenv.errors import (
    DatasetFileError,
    LogError,
    MissingExtraError,
    OptionError,
    OptionTypeError,
    UnknownNameError,
)
from tests.selectenv.datasets.logs import ROLES, TRIPS, episodes, reference, rows, same_transitions


def read(columns, **roles):
    return selectenv.from_dataframe(pd.DataFrame(columns), **ROLES | roles)


def test_states_actions_and_ends():
    data = read(TRIPS)
    assert data.ids.tolist() == [
        "place=hall, floor=0",
        "place=hall, floor=1",
        "place=lift, floor=0",
        "place=lift, floor=1",
    ]
    assert {name: values.tolist() for name, values in data.state_columns.items()} == {
        "place": ["hall", "hall", "lift", "lift"],
        "floor": [0, 1, 0, 1],
    }
    assert data.action_names.tolist() == ["go", "stop"]
    assert data.state.tolist() == [3, 1, 0, 2, 1]  # trip 3 first
    assert data.action.tolist() == [0, 0, 0, 1, 0]
    assert data.next_state.tolist() == [1, -1, 2, 1, -1]
    assert data.terminated.tolist() == [False, True, False, False, True]
    assert not data.truncated.any()
    assert not data.has_rewards


def test_it_says_what_it_understood(capsys):
    data = read(TRIPS)
    said = capsys.readouterr().err
    assert said == (
        "data frame: 5 transitions in 2 episodes, 4 states (place, floor), 2 actions (go, stop), 40.0 % of the "
        "transitions terminal (assumed at ends of episodes)\n"
    )
    assert data.summary == said.strip()
    one = read({**TRIPS, "end": [0, 0, 1, 0, 1]}, state="floor", terminated="end")
    assert one.summary.endswith("2 states, 2 actions (go, stop), 40.0 % of the transitions terminal")


@pytest.mark.parametrize("text", ["object", "string", "category"])
def test_all_sources_agree(tmp_path, text):
    frame = pd.DataFrame(TRIPS).astype({"place": text, "action": text})
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_csv(tmp_path / "log.csv.gz", index=False)
    frame.to_csv(tmp_path / "semicolon.txt", index=False, sep=";")
    frame.to_parquet(tmp_path / "log.parquet")
    views = pa.table(TRIPS)
    views = views.set_column(2, "place", views["place"].cast(pa.string_view()))
    expected = read(TRIPS)
    found = [
        selectenv.from_dataframe(frame, **ROLES),
        selectenv.from_dataframe(pl.from_pandas(frame), **ROLES),
        selectenv.from_dataframe(pl.from_pandas(frame).lazy(), **ROLES),
        selectenv.from_dataframe(views, **ROLES),
        selectenv.from_csv(tmp_path / "log.csv", **ROLES),
        selectenv.from_csv(str(tmp_path / "log.csv.gz"), **ROLES),
        selectenv.from_csv(tmp_path / "semicolon.txt", **ROLES, delimiter=";"),
        selectenv.from_parquet(tmp_path / "log.parquet", **ROLES),
    ]
    for data in found:
        assert data.fingerprint == expected.fingerprint
        assert json.loads(json.dumps(data.spec))["columns"]["state"] == ["place", "floor"]
    assert found[4].spec["source"] == "log.csv"


@given(episodes())
def test_logs_agree_with_arrays(found):
    expected = reference(found)
    columns = rows(found)
    roles = {"state": "place", "action": "action", "episode": "trip"}
    frame = pl.DataFrame(columns, strict=False)
    assert same_transitions(selectenv.from_dataframe(frame, **roles), expected)
    data = selectenv.from_episodes(found)
    assert same_transitions(data, expected)
    assert selectenv.from_dataframe(frame, **roles).fingerprint == data.fingerprint


@given(episodes(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter_if_there_is_a_time(found, random):
    frame = pl.DataFrame(rows(found), strict=False)
    order = list(range(len(frame)))
    random.shuffle(order)
    roles = {"state": "place", "action": "action", "episode": "trip", "time": "clock"}
    data = selectenv.from_dataframe(frame[order], **roles)
    assert data.fingerprint == selectenv.from_dataframe(frame, **roles).fingerprint


@given(episodes())
def test_csv_files_hold_the_same_text(tmp_path_factory, found):
    columns = rows(found)
    if not isinstance(columns["place"][0], str):
        columns["place"] = [f"s{state}" for state in columns["place"]]
    columns["place"] = [f"s {state}" for state in columns["place"]]
    columns["action"] = [action if action is None else f"a {action}" for action in columns["action"]]
    frame = pl.DataFrame(columns)
    path = tmp_path_factory.mktemp("csv") / "log.csv"
    frame.write_csv(path)
    roles = {"state": "place", "action": "action", "episode": "trip", "time": "clock"}
    assert selectenv.from_csv(path, **roles).fingerprint == selectenv.from_dataframe(frame, **roles).fingerprint


def test_ids_of_several_columns_are_different_for_different_states():
    entries = ["b", "b, c=d", 'b", c=d', "b,c", "", "b=c", "d"]
    pairs = [(a, c) for a in entries for c in entries]
    columns = {"a": [a for a, _ in pairs], "c": [c for _, c in pairs], "action": [0] * len(pairs)}
    data = selectenv.from_dataframe(pd.DataFrame({**columns, "e": 0}), state=["a", "c"], action="action", episode="e")
    assert data.n_states == len(pairs)
    assert 'a="b, c=d", c=d' in data.ids.tolist()
    kept = {name: values.tolist() for name, values in data.state_columns.items()}
    assert set(zip(kept["a"], kept["c"], strict=True)) == set(pairs)


@pytest.mark.parametrize("largest", [log_dataset.LARGEST_KEY, 3])
@pytest.mark.parametrize("dense", [log_columns.DENSE_VALUES, 0])
def test_ways_to_number_states_agree(monkeypatch, largest, dense):
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(-3, 3, 200) for name in "abc"} | {
        "action": rng.integers(0, 2, 200),
        "e": np.arange(200) // 9,
    }
    expected = selectenv.from_dataframe(pd.DataFrame(columns), state=list("abc"), action="action", episode="e")
    monkeypatch.setattr(log_dataset, "LARGEST_KEY", largest)
    monkeypatch.setattr(log_columns, "DENSE_VALUES", dense)
    found = selectenv.from_dataframe(pd.DataFrame(columns), state=list("abc"), action="action", episode="e")
    assert found.fingerprint == expected.fingerprint
    assert expected.action_names is None  # they are 0 and 1


@pytest.mark.parametrize(
    ("column", "ids"),
    [
        ([True, False, True, False, True], ["false", "true"]),
        ([1.0, 2.0, 1.0, 2.0, 2.0], [1, 2]),
        (pd.Categorical([5, 3, 5, 3, 3], categories=[5, 4, 3]), [3, 5]),
        (pd.Categorical([True, False, True, False, False]), ["false", "true"]),
        (np.array([2, 1, 2, 1, 1], np.uint64), [1, 2]),
        (pd.array([1, 2, 1, 2, 2], dtype="Int64"), [1, 2]),
        (["a", "ä", "a", "ä", "ä"], ["a", "ä"]),
    ],
)
def test_types_of_columns(column, ids):
    assert read({**TRIPS, "place": column}, state="place").ids.tolist() == ids


def test_times_are_numbers_or_dates():
    expected = read(TRIPS).fingerprint
    for times in (
        [1.5, 2.5, 1e9, 1, 2],
        [9, 10, 11, 9, 10],
        pd.to_datetime(["2024-01-01", "2024-01-02", "2024-02-01", "2020-01-01", "2021-01-01"]),
        pd.to_datetime(["2024-01-01", "2024-01-02", "2024-02-01", "2020-01-01", "2021-01-01"]).date,
        ["9", "10", "11", "9", "10"],
        ["9", "10.5", "11", "9", "10"],
        ["2024-01-01 10:00", "2024-01-01 10:01", "2024-01-02 09:00", "2020-01-01", "2021-01-01"],
        [
            "2024-01-01T10:00:00Z",
            "2024-01-01T10:00:01Z",
            "2024-01-01T11:00:00Z",
            "2020-01-01 00:00:00Z",
            "2021-01-01 00:00:00Z",
        ],
        pd.Categorical(["9", "10", "11", "9", "10"]),
    ):
        assert read({**TRIPS, "clock": times}).fingerprint == expected


def test_next_states():
    following = {"place": ["lift", None, "lift", "hall", "roof"], "floor": [0, None, 0, 1, 9]}
    columns = {**TRIPS, "to": following["place"], "at": following["floor"]}
    data = read(columns, next_state=["to", "at"])
    # Trip 3 ends on the roof, where nothing is done. Trip 7: a next state is missing and taken from the next row; the
    # last one is a state of the log, so the episode was cut there.
    assert data.next_state.tolist() == [1, -1, 2, 1, 2]
    assert data.terminated.tolist() == [False, True, False, False, False]
    assert data.truncated.tolist() == [False, False, False, False, True]
    columns["to"][0] = "hall"
    gap = read(columns, next_state=["to", "at"])  # the log continues elsewhere
    assert gap.next_state.tolist() == [1, -1, 0, 1, 2]
    assert gap.truncated.tolist() == [False, False, True, False, True]
    assert gap.episode_start.tolist() == [True, False, True, True, False]


def test_without_episodes():
    log = {"s": ["a", "b", "a", "c"], "a": ["x", "y", "x", "x"], "n": ["b", "end", "c", None], "d": [0, 1, 0, 0]}
    frame = pd.DataFrame(log)
    by_flag = selectenv.from_dataframe(frame, state="s", action="a", terminated="d")
    assert by_flag.episode_start.tolist() == [True, False, True, False]
    assert by_flag.terminated.tolist() == [False, True, False, False]
    assert by_flag.truncated.tolist() == [False, False, False, True]
    assert by_flag.next_state.tolist() == [1, -1, 2, -1]
    by_jump = selectenv.from_dataframe(frame, state="s", action="a", next_state="n")
    assert by_jump.episode_start.tolist() == [True, False, True, False]
    assert by_jump.terminated.tolist() == [False, True, False, True]
    with pytest.raises(LogError, match="episodes cannot be told apart"):
        selectenv.from_dataframe(frame, state="s", action="a")


def test_final_rows_say_where_an_episode_ended():
    log = {"e": [0, 0, 0, 1, 1], "s": ["a", "b", "a", "b", "end"], "a": ["x", "x", None, "x", None]}
    data = selectenv.from_dataframe(pd.DataFrame(log), state="s", action="a", episode="e")
    assert len(data) == 3
    assert data.next_state.tolist() == [1, 0, -1]
    assert data.truncated.tolist() == [False, True, False]
    assert data.terminated.tolist() == [False, False, True]
    flagged = {**log, "done": [False, False, True, False, False], "cut": [False, False, False, False, True]}
    data = selectenv.from_dataframe(
        pd.DataFrame(flagged), state="s", action="a", episode="e", terminated="done", truncated="cut"
    )
    assert data.terminated.tolist() == [False, True, False]
    assert data.truncated.tolist() == [False, False, True]
    only = selectenv.from_dataframe(pd.DataFrame({**log, "e": [0, 0, 0, 1, 2]}), state="s", action="a", episode="e")
    assert only.terminated.tolist() == [False, False, True]


def test_truncated_and_rewards():
    columns = {**TRIPS, "cut": ["no", "no", "yes", "no", "no"], "pay": [1, 2, 3, 4, 5]}
    data = read(columns, truncated="cut", reward="pay")
    assert data.terminated.tolist() == [False, True, False, False, False]
    assert data.truncated.tolist() == [False, False, False, False, True]
    assert data.hidden_reward.tolist() == [4, 5, 1, 2, 3]


def test_bins():
    values = [0.0, 0.5, 1.0, 2.0, 4.0]
    columns = {**TRIPS, "x": values, "next": [0.5, 1.0, None, 4.0, 99.0]}
    data = read(columns, state="x", bins={"x": 4})
    assert data.ids.tolist() == ["1 to 2", "2 to 3", "3 or more", "below 1"]
    assert data.spec["bins"] == {"x": [1.0, 2.0, 3.0]}
    again = read(columns, state="x", bins=data.spec["bins"])
    assert again.fingerprint == data.fingerprint
    entered = read(columns, state="x", next_state="next", bins={"x": [0.75]})
    assert entered.ids.tolist() == ["0.75 or more", "below 0.75"]
    assert entered.next_state.tolist() == [0, 0, 1, 0, -1]
    both = read({**columns, "force": values}, state=["place", "x"], action="force", bins={"x": [1], "force": [0.4, 3]})
    assert both.action_names.tolist() == ["below 0.4", "0.4 to 3", "3 or more"]
    assert both.state_columns["x"].tolist() == ["1 or more", "below 1", "1 or more", "below 1"]
    assert read({**columns, "x": 1.5}, state="x", bins={"x": 3}).ids.tolist() == ["any"]
    close = read(columns, state="x", bins={"x": [1.0, 1.0000001]})
    assert close.ids.tolist() == ["1.0 to 1.0000001", "1.0000001 or more", "below 1.0"]
    with pytest.raises(LogError, match="row 0, column 'x': the number is infinite"):
        read({**columns, "x": np.inf}, state="x", bins={"x": 3})
    with pytest.raises(LogError, match="too wide"):
        read({**columns, "x": [-1e308, 1e308, 0, 0, 0]}, state="x", bins={"x": 3})
    with pytest.raises(LogError, match="row 0, column 'place': 'hall' is not a number"):
        read(columns, bins={"place": 3})
    for wrong in (0, [2, 1], [1, 1], [float("nan")], "many", 1.5, [[1]]):
        with pytest.raises(OptionError, match="bins"):
            read(columns, state="x", bins={"x": wrong})
    with pytest.raises(UnknownNameError, match="Did you mean 'place'"):
        read(columns, bins={"plaec": 3})


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20), st.integers(1, 9))
def test_every_number_is_in_the_interval_that_its_name_says(values, count):
    column, edges = log_columns.cut_column("x", np.array(values), count, str)
    assert len(edges) < count or count == 1
    edges = [-np.inf, *edges, np.inf]
    for value, code in zip(values, column.code, strict=True):
        assert edges[code] <= value < edges[code + 1]
    assert len(set(column.values.tolist())) == len(column.values) == len(edges) - 1


WRONG = {
    "missing state": (
        {"place": ["hall", None, "hall", "lift", "lift"]},
        {},
        "row 1, column 'place': the entry is missing",
    ),
    "missing episode": ({"trip": [7, 7, None, 3, 3]}, {}, "row 2, column 'trip': the entry is missing"),
    "missing action": ({"action": ["go", None, "go", "go", "go"]}, {}, "row 1, column 'action': the action is missing"),
    "no action": ({"action": [None] * 5}, {}, "row 3, column 'action': the action is missing"),
    "missing time": ({"clock": [1, None, 3, 1, 2]}, {}, "row 1, column 'clock': the time is missing"),
    "same time": ({"clock": [1, 2, 2, 1, 2]}, {}, "row 2, column 'clock': row 1 of episode 7 has the same time"),
    "text time": ({"clock": ["1", "2", "soon", "1", "2"]}, {}, "row 2, column 'clock': 'soon' does not fit"),
    "mixed time": (
        {"clock": ["1", "2", "2024-01-01", "1", "2"]},
        {},
        "row 2, column 'clock': '2024-01-01' does not fit",
    ),
    "truth time": ({"clock": [True] * 5}, {}, "column 'clock' must hold numbers or dates, not bool"),
    "continuous": (
        {"floor": [0, 0.5, 1, 1, 1]},
        {},
        "row 1, column 'floor': 0.5 is not a whole number.*bins=.'floor': 10",
    ),
    "infinite": ({"floor": [0, np.inf, 1, 1, 1]}, {}, "row 1, column 'floor': inf is not a whole number"),
    "continuous action": ({"action": [0, 0.5, 1, 1, 1]}, {}, "row 1, column 'action': 0.5"),
    "category": ({"floor": pd.Categorical([1, 0.5, 1, 1, 1])}, {}, "row 1, column 'floor': 0.5"),
    "dates": ({"floor": pd.to_datetime(["2024-01-01"] * 5)}, {}, "column 'floor' holds timestamp"),
    "mixed": (
        {"place": pd.Series(["hall", "lift", 3, "hall", "hall"], dtype=object)},
        {},
        "row 2, column 'place': 3 is of another type than 'hall' in row 0",
    ),
    "objects": ({"place": [object()] * 5}, {}, "column 'place' cannot be read"),
    "lists": ({"place": [[1]] * 5}, {}, "column 'place' holds list"),
    "NUL": (
        {"place": ["hall", "a\0", "hall", "lift", "lift"]},
        {},
        "row 1, column 'place': .* contains the character NUL",
    ),
    "huge": (
        {"floor": np.array([1, 2**63, 1, 1, 1], np.uint64)},
        {},
        "row 1, column 'floor': 9223372036854775808 is beyond",
    ),
    "flag": ({"end": [0, 2, 0, 0, 0]}, {"terminated": "end"}, "row 1, column 'end': 2 is neither true nor false"),
    "missing flag": ({"end": [0, None, 1, 0, 1]}, {"terminated": "end"}, "row 1, column 'end': the entry is missing"),
    "early": ({"end": [0, 1, 1, 0, 1]}, {"terminated": "end"}, "row 1, column 'end': the episode 7 continues"),
    "early cut": ({"end": [1, 0, 0, 0, 1]}, {"truncated": "end"}, "row 0, column 'end': the episode 7 continues"),
    "reward": ({"pay": [0, np.nan, 1, 1, 1]}, {"reward": "pay"}, "row 1, column 'pay': a reward must be a number"),
    "text reward": ({"pay": ["1", "x", "1", "1", "1"]}, {"reward": "pay"}, "row 1, column 'pay': 'x' is not a number"),
    "truth reward": ({"pay": [True] * 5}, {"reward": "pay"}, "column 'pay' must hold numbers, not bool"),
    "part of next": (
        {"to": ["hall"] * 5, "at": [0, None, 1, 1, 1]},
        {"next_state": ["to", "at"]},
        "row 1, column 'at': the entry is missing, although",
    ),
    "other type": (
        {"to": [1] * 5, "at": [1] * 5},
        {"next_state": ["to", "at"]},
        "'place' and 'to' must both hold text",
    ),
}


@pytest.mark.parametrize(("change", "roles", "message"), WRONG.values(), ids=WRONG)
def test_refusals_name_the_row_and_the_column(change, roles, message):
    with pytest.raises(LogError, match=message):
        read({**TRIPS, **change}, **roles)


def test_rows_are_those_of_the_unsorted_log():
    order = [4, 2, 0, 3, 1]
    columns = pd.DataFrame({**TRIPS, "end": [0, 3, 0, 0, 0]}).iloc[order]
    with pytest.raises(LogError, match="row 4, column 'end': 3"):
        selectenv.from_dataframe(columns, **ROLES, terminated="end")
    with pytest.raises(LogError, match="row 0, column 'end': the episode 3 continues"):
        selectenv.from_dataframe(columns.assign(end=[1, 0, 0, 0, 0], clock=[0, 3, 1, 1, 2]), **ROLES, terminated="end")


def test_wrong_roles():
    frame = pd.DataFrame(TRIPS)
    with pytest.raises(UnknownNameError, match=r"unknown column 'plcae'; allowed: .*Did you mean 'place'"):
        selectenv.from_dataframe(frame, **ROLES | {"state": "plcae"})
    with pytest.raises(OptionError, match="names a column twice"):
        selectenv.from_dataframe(frame, **ROLES | {"state": ["place", "place"]})
    with pytest.raises(OptionError, match="next_state must name one column for each"):
        selectenv.from_dataframe(frame, **ROLES, next_state="place")
    for wrong in ({"state": []}, {"state": 3}, {"action": 3}, {"episode": 0}, {"bins": 3}):
        with pytest.raises(OptionTypeError):
            selectenv.from_dataframe(frame, **ROLES | wrong)
    with pytest.raises(OptionTypeError, match="frame must be a data frame"):
        selectenv.from_dataframe(TRIPS, **ROLES)
    with pytest.raises(LogError, match="several columns of this name"):
        selectenv.from_dataframe(pd.concat([frame, frame], axis=1), **ROLES)
    with pytest.raises(LogError, match="empty"):
        selectenv.from_dataframe(frame.iloc[:0], **ROLES)
    with pytest.raises(LogError, match="no row has an action"):
        selectenv.from_dataframe(frame.assign(action=None, trip=range(5)), **ROLES)


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_csv_columns_are_numbers_or_text(tmp_path):
    path = write(
        tmp_path / "log.csv",
        "e,code,zip,mixed,big,action\n"
        + "".join(f"{e},{e}.0,0{e},{'x' if e == 2 else e},{10**18 + e},go\n" for e in range(3)),
    )
    for column, ids in {
        "code": [0, 1, 2],
        "zip": ["00", "01", "02"],
        "mixed": ["0", "1", "x"],
        "big": [str(10**18 + e) for e in range(3)],
    }.items():
        assert selectenv.from_csv(path, state=column, action="action", episode="e").ids.tolist() == ids
    path = write(tmp_path / "quoted.csv", 'e,s,a\n1,"two\nlines",NA\n1,"",NA\n1,"a,b",null\n')
    data = selectenv.from_csv(path, state="s", action="a", episode="e")
    assert data.ids.tolist() == ["", "a,b", "two\nlines"]
    assert data.action_names.tolist() == ["NA", "null"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "e,s,a\n1,x,go\n1,,go\n",
            r"row 1 \(3 in a spreadsheet\), column 's': the entry is missing; the option missing",
        ),
        (
            "e,s,a\n1,,go\n1,x,go\n1,,go\n",
            r"row 0 \(2 .*\), column 's': the entry is missing, and 1 more in this column",
        ),
        ("e,s,a\n1,0.5,go\n1,1,go\n", r"row 0 \(2 .*\), column 's': 0.5 is not a whole number"),
        ("e,s,a\n1,x,go\n1,y,go,4\n", r"row 1 \(3 in a spreadsheet\) has 4 fields instead of 3: '1,y,go,4'"),
        (b"e,s,a\n1,x,go\n1,\xff,go\n", r"row 1 \(3 .*\), column 's': .* is not text in UTF-8"),
        ("e,s,a\n", "the log is empty"),
    ],
)
def test_csv_files_with_unusable_rows(tmp_path, text, message):
    with pytest.raises(LogError, match=message):
        selectenv.from_csv(write(tmp_path / "log.csv", text), state="s", action="a", episode="e")


def test_files_that_cannot_be_read(tmp_path):
    roles = {"state": "s", "action": "a", "episode": "e"}
    for function in (selectenv.from_csv, selectenv.from_parquet):
        with pytest.raises(DatasetFileError, match="there is no file"):
            function(tmp_path / "missing", **roles)
        with pytest.raises(DatasetFileError, match="can be read"):
            function(write(tmp_path / "empty", b""), **roles)
    with pytest.raises(DatasetFileError, match="Parquet"):
        selectenv.from_parquet(write(tmp_path / "log.csv", "e,s,a\n1,1,1\n"), **roles)
    with pytest.raises(DatasetFileError, match="CSV"):
        selectenv.from_csv(tmp_path, **roles)
    with pytest.raises(DatasetFileError, match="CSV"):
        selectenv.from_csv(write(tmp_path / "log.csv.gz", gzip.compress(b"e,s,a\n1,1,1\n")[:-9]), **roles)
    with pytest.raises(OptionError, match="the single column 'e;s;a': try the delimiter ';'"):
        selectenv.from_csv(write(tmp_path / "other.csv", "e;s;a\n1;1;1\n"), **roles)
    for wrong in ("", ",,", '"', "\n", "é", 3):
        with pytest.raises(OptionError, match="delimiter"):
            selectenv.from_csv(tmp_path / "log.csv", **roles, delimiter=wrong)


def test_parquet_directories(tmp_path):
    for part in (0, 1):
        pq.write_table(pa.table({"e": [part] * 2, "s": ["x", "y"], "a": [1, 0]}), tmp_path / f"{part}.parquet")
    data = selectenv.from_parquet(tmp_path, state="s", action="a", episode="e")
    assert len(data) == 4
    assert data.ids.tolist() == ["x", "y"]


def test_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"this needs pyarrow.*selectenv\[data\]"):
        read(TRIPS)
