"""Collecting, deriving, saving and caching datasets, and own arrays."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import selectenv
from selectenv import datasets
from selectenv.domains import tabular as domains
from selectenv.errors import DatasetError, DatasetFileError, LabelError, NoEvaluatorError, UnknownStateError
from tests.selectenv import twins


def collect(world, size=1000, seed=0, share=0.5, mixture="all", expert="published"):
    spec = datasets.dataset_spec(world, expert_share=share, mixture=mixture, expert=expert, size=size, seed=seed)
    return datasets.collect(world, spec)


@given(twins.worlds, st.integers(0, 50))
def test_derived_quantities(world, seed):
    data = collect(world, 200, seed)
    assert len(data) == data.visits.sum() == 200
    assert data.visitation.sum() == pytest.approx(1)
    assert data.start.sum() == pytest.approx(1)
    np.testing.assert_allclose(data.action_frequencies.sum(axis=1), 1)
    for s in range(data.n_states):
        here = data.state == s
        assert data.labelable[s] == here.any()
        if here.any():
            assert data.termination[s] == pytest.approx(data.terminated[here].mean())
            assert data.action_frequencies[s, 0] == pytest.approx((data.action[here] == 0).mean())
        else:
            np.testing.assert_allclose(data.action_frequencies[s], 1 / data.n_actions)
        first, source, count = data.predecessors
        mine = slice(first[s], first[s + 1])
        for state, times in zip(source[mine], count[mine], strict=True):
            assert times == ((data.next_state == s) & (data.state == state)).sum()
        assert count[mine].sum() == (data.next_state == s).sum()
    ends = data.terminated | data.truncated
    assert ends[-1]
    assert data.episode_start[0]
    np.testing.assert_array_equal(data.episode_start[1:], ends[:-1])
    inside = ~ends
    np.testing.assert_array_equal(data.next_state[inside], data.state[1:][inside[:-1]])


@given(twins.worlds)
def test_empirical_model_is_the_counts(world):
    data = collect(world, 150)
    p, r, seen = twins.dense_data(data)
    model = data.empirical_model(data.all_rewards)
    pair = np.arange(data.n_states * data.n_actions)
    assert np.array_equal(model.seen, seen.ravel())
    np.testing.assert_allclose(model.reward, r.ravel(), atol=1e-12)
    for c in pair:
        row = np.zeros(data.n_states)
        row[model.next_state[model.first_outcome[c] : model.first_outcome[c + 1]]] = model.probability[
            model.first_outcome[c] : model.first_outcome[c + 1]
        ]
        np.testing.assert_allclose(row, p.reshape(-1, data.n_states)[c], atol=1e-12)


@pytest.mark.parametrize("name", selectenv.TABULAR)
def test_published_data(name):
    """100,000 transitions; the data follow the mixture, and the horizon cuts without ending."""
    world = selectenv.TABULAR[name].make()
    row = selectenv.TABULAR[name]
    data = selectenv.make_problem(name).dataset
    assert len(data) == 100_000
    assert data.labelable.all()
    policy = domains.mixture_policy(domains.expert_actions(world), row.defaults.expert_share, row.defaults.mixture)
    spread = np.sqrt(policy * (1 - policy) / np.maximum(data.visits, 1)[:, None])
    assert (np.abs(data.action_frequencies - policy) <= 5 * spread + 1e-12).all()
    cut = data.truncated[:-1]
    assert (data.next_state[:-1][cut] >= 0).all()
    starts = np.flatnonzero(data.episode_start)
    lengths = np.diff(starts)
    assert lengths.max() <= world.horizon
    assert (lengths[data.truncated[starts[1:] - 1]] == world.horizon).all()


@pytest.mark.parametrize(("name", "share"), [("Graph", 0.7), ("Tree", 0.7), ("TwoRooms", 0.5), ("CliffWalk", 0.5)])
def test_named_datasets(name, share):
    assert selectenv.make_problem(name, dataset_size=100).dataset.spec["expert_share"] == share
    for test in (0.55, 0.53, 0.51, 0.48, 0.45):
        spec = selectenv.make_problem(name, dataset=f"test-{test}", dataset_size=100).dataset.spec
        assert spec["expert_share"] == test


def test_same_seed_same_data_and_other_seeds_other_data():
    world = domains.tree()
    same, again, other = collect(world), collect(world), collect(world, seed=1)
    assert same.fingerprint == again.fingerprint != other.fingerprint


def test_rewards_are_read_through_labels():
    data = collect(domains.graph(), 500)
    labels = np.zeros(15, bool)
    labels[3] = True
    revealed = data.reveal(labels)
    assert np.isnan(revealed[data.state != 3]).all()
    np.testing.assert_array_equal(revealed[data.state == 3], data.hidden_reward[data.state == 3])
    with pytest.raises(LabelError, match="boolean array of shape"):
        data.reveal(np.zeros(14, bool))


def test_round_trip(tmp_path):
    data = collect(domains.tree(), 300)
    path = datasets.save(data, tmp_path / "deep" / "tree.npz")
    back = datasets.load(path)
    assert back.fingerprint == data.fingerprint
    assert dict(back.spec) == dict(data.spec)
    assert [p.name for p in path.parent.iterdir()] == ["tree.npz"]
    problem = selectenv.make_problem("Tree", dataset=path)
    assert problem.performance([15, 19, 23]) == pytest.approx(16.904525, abs=0.5)


def rewrite(path, change):
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    header = json.loads(str(arrays["header"]))
    change(header, arrays)
    arrays["header"] = np.array(json.dumps(header))
    np.savez(path, **arrays)


def test_damaged_and_foreign_files(tmp_path):
    path = datasets.save(collect(domains.graph(), 50), tmp_path / "graph.npz")
    with pytest.raises(DatasetFileError, match="no dataset file"):
        datasets.load(tmp_path / "missing.npz")
    content = path.read_bytes()
    for damaged in (content[:100], b"", b"not a dataset", content[:-200]):
        path.write_bytes(damaged)
        with pytest.raises(DatasetFileError):
            datasets.load(path)

    def out_of_range(header, arrays):
        arrays["next_state"][0] = 999

    def swapped(header, arrays):
        arrays["action"] = 1 - arrays["action"]

    def newer(header, arrays):
        header["version"] = 99

    def foreign(header, arrays):
        header["format"] = "something else"

    def forged(header, arrays):
        header["spec"]["seed"] = 77

    def wrong_type(header, arrays):
        arrays["terminated"] = arrays["terminated"].astype(np.int64)

    def extra(header, arrays):
        arrays["surprise"] = np.zeros(3)

    changes = {
        out_of_range: "damaged",
        swapped: "hash",
        newer: "version 99",
        foreign: "not a dataset",
        extra: "damaged",
    }
    for change, message in changes.items():
        path.write_bytes(content)
        rewrite(path, change)
        with pytest.raises(DatasetFileError, match=message):
            datasets.load(path)
    np.savez(path, other=np.zeros(3))
    with pytest.raises(DatasetFileError, match="not a dataset"):
        datasets.load(path)
    np.savez(path, header=np.array([{"pickled": True}], dtype=object))
    with pytest.raises(DatasetFileError):
        datasets.load(path)


def test_nothing_half_written_stays_behind(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(OSError, match="no space"):
        datasets.save(collect(domains.graph(), 50), tmp_path / "graph.npz")
    assert list(tmp_path.iterdir()) == []


def test_cache_is_used_repaired_and_optional(tmp_path, monkeypatch):
    monkeypatch.setenv("SELECTENV_CACHE", str(tmp_path / "cache"))
    first = selectenv.make_problem("Graph", dataset_size=300).dataset
    (path,) = (tmp_path / "cache").iterdir()
    stamp = path.stat().st_mtime_ns
    again = selectenv.make_problem("Graph", dataset_size=300).dataset
    assert (again.fingerprint, path.stat().st_mtime_ns) == (first.fingerprint, stamp)
    path.write_bytes(b"damaged")
    assert selectenv.make_problem("Graph", dataset_size=300).dataset.fingerprint == first.fingerprint
    assert datasets.load(path).fingerprint == first.fingerprint
    selectenv.make_problem("Graph", dataset_size=301, cache=False)
    assert len(list((tmp_path / "cache").iterdir())) == 1
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SELECTENV_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.warns(RuntimeWarning, match="could not be cached"):
        assert selectenv.make_problem("Graph", dataset_size=300).dataset.fingerprint == first.fingerprint


def test_the_cache_tells_experts_apart_and_keeps_to_its_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SELECTENV_CACHE", str(tmp_path / "cache"))
    found = []
    for action in (0, 1):
        world = selectenv.from_outcomes(
            "../../escaped",
            state=[0, 0],
            action=[0, 1],
            probability=[1, 1],
            next_state=[0, 0],
            reward=[0, 1],
            terminated=[True, True],
            start=[1.0],
            expert={0: [action]},
        )
        found.append(
            selectenv.make_problem(world, expert_share=1.0, dataset_size=50).dataset.action_frequencies.tolist()
        )
    assert found == [[[1, 0]], [[0, 1]]]
    assert len(list((tmp_path / "cache").iterdir())) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_strings_of_pandas_are_strings():
    column = np.array(["a", "b"], dtype=object)
    assert selectenv.from_arrays(column, [0, 1], column[::-1], [False, False]).ids.tolist() == ["a", "b"]


def test_platform_cache_folders(monkeypatch, tmp_path):
    monkeypatch.delenv("SELECTENV_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.cache_folder() == tmp_path / "selectenv"


OWN = {
    "states": ["a", "b", "a", "c"],
    "actions": [0, 1, 1, 0],
    "next_states": ["b", "end", "c", "a"],
    "ends": [False, True, False, False],
}


def test_own_arrays_with_string_ids():
    data = selectenv.from_arrays(**OWN, rewards=[0, 1, 0, 2])
    assert data.ids.tolist() == ["a", "b", "c"]
    assert data.next_state.tolist() == [1, -1, 2, 0]
    assert data.episode_start.tolist() == [True, False, True, False]
    assert data.truncated.tolist() == [False, False, False, True]
    assert data.termination.tolist() == [0, 1, 0]
    assert data.numbers(["c", "a"]).tolist() == [2, 0]


def test_own_arrays_see_cuts():
    data = selectenv.from_arrays([1, 2, 9, 1], [0] * 4, [2, 3, 1, 2], [False] * 4)
    assert data.truncated.tolist() == [False, True, False, True]  # after 3 comes 9: an episode was cut
    assert data.next_state.tolist() == [1, -1, 0, 1]  # state 3 was never acted in: nothing is known of it


def test_own_arrays_numbered_by_a_world():
    world = domains.frozen_lake()
    data = selectenv.from_arrays([14, 14], [2, 2], [14, 15], [False, True], rewards=[0, 1], world=world)
    assert data.n_states == 11
    problem = selectenv.make_problem(world, dataset=data)
    assert problem.learn([10]).table[10].tolist() == [0, 0, 1, 0]
    assert problem.performance([10]) > problem.performance([])
    with pytest.raises(UnknownStateError, match="no state 15"):
        selectenv.from_arrays([15], [0], [14], [False], world=world)
    with pytest.raises(UnknownStateError, match="no state 99"):
        selectenv.from_arrays([14], [0], [99], [False], world=world)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"states": [], "actions": np.empty(0, int), "next_states": np.empty(0, int), "ends": []},
            "integers or all strings",
        ),
        (
            {"states": np.empty(0, int), "actions": np.empty(0, int), "next_states": np.empty(0, int), "ends": []},
            "empty",
        ),
        ({"actions": [0, 1]}, "equally long"),
        ({"actions": [0.5] * 4}, "actions must be integers"),
        ({"states": [0.1] * 4}, "integers or all strings"),
        ({"rewards": [1.0]}, "4 entries"),
        ({"rewards": [1.0, np.nan, 0, 0]}, "numbers from"),
        ({"n_actions": 1}, "actions must lie in 0..0"),
        ({"n_actions": 2.7}, "n_actions must be"),
        ({"actions": [0, 1, 1, 2**32]}, "n_actions must be"),
        ({"next_states": [1, 2, 3, 4]}, "all integers or all strings"),
        ({"ends": ["False", "True", "x", "y"]}, "ends must be true or false"),
        ({"ends": [0, 2.5, 0, 1]}, "ends must be true or false"),
        ({"states": [["a"], ["b", "c"]]}, "states must be"),
    ],
)
def test_own_arrays_that_do_not_fit(change, message):
    with pytest.raises(DatasetError, match=message):
        selectenv.from_arrays(**OWN | change)


def test_unknown_ids():
    data = collect(domains.frozen_lake(), 50)
    assert data.numbers([]).tolist() == []
    for wrong in ([5], [14, 99], ["a"], [1.5]):
        with pytest.raises(UnknownStateError, match="there is no state with id"):
            data.numbers(wrong)


def test_data_without_rewards_reveal_nothing():
    data = selectenv.from_arrays(**OWN)
    assert not data.has_rewards
    with pytest.raises(NoEvaluatorError, match="no rewards"):
        data.reveal(np.ones(3, bool))


@pytest.mark.parametrize("size", [0, -1, 2.5, True])
def test_sizes_out_of_range(size):
    with pytest.raises(DatasetError, match="dataset_size"):
        selectenv.make_problem("Graph", dataset_size=size)
