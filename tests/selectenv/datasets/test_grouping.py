"""Groups of states: clusters, episodes and own groups, against plain Python over transitions."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import selectenv
from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.storage import load, save
from selectenv.datasets.vector_observations import Vectors
from selectenv.errors import DatasetError, ObservationError, OptionError, OptionTypeError, UnknownNameError


def vector_data(seed=0, size=200, width=3, n_actions=2):
    """Random walks of vectors, with terminated and truncated episodes."""
    rng = np.random.default_rng(seed)
    episodes, left = [], size
    while left:
        steps = min(left, int(rng.integers(1, 30)))
        states = rng.normal(size=(steps + 1, width)).cumsum(axis=0).astype(np.float32)
        episodes.append(
            {
                "states": states,
                "actions": rng.integers(n_actions, size=steps).tolist(),
                "rewards": rng.normal(size=steps).tolist(),
                "terminated": bool(rng.random() < 0.5),
            }
        )
        left -= steps
    return selectenv.from_episodes(episodes)


DATA = vector_data()


def test_clusters_are_those_of_the_nearest_centre():
    grouped = selectenv.group_states(DATA, 12)
    vectors, centres = DATA.vectors, grouped.groups.regions.centres
    points = (vectors.values.astype(np.float64) - vectors.mean) / vectors.scale
    nearest = ((points[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(grouped.groups.cell, nearest)
    np.testing.assert_array_equal(grouped.locate(vectors.values), nearest)
    np.testing.assert_array_equal(grouped.state, nearest[DATA.state])
    assert grouped.n_states == 12
    assert grouped.cells is grouped
    assert grouped.base.fingerprint == DATA.without_rewards.fingerprint


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 20))
def test_features_of_groups_are_sums_and_weighted_means(seed, count):
    data = vector_data(seed, size=60)
    rng = np.random.default_rng(seed)
    own = rng.integers(count, size=data.n_states)
    own[:count] = np.arange(count)  # every group has a member
    grouped = selectenv.group_states(data, own)
    for group in range(count):
        members = own == group
        assert grouped.visits[group] == data.visits[members].sum()
        weights = data.visits[members]
        if weights.sum():
            assert grouped.termination[group] == pytest.approx(np.average(data.termination[members], weights=weights))
            known = grouped.reveal(np.arange(count) == group)
            np.testing.assert_array_equal(~np.isnan(known), members[data.state])
            np.testing.assert_array_equal(known[members[data.state]], data.hidden_reward[members[data.state]])
    inside = data.next_state >= 0
    expected = np.zeros((count, count))
    np.add.at(expected, (own[data.next_state[inside]], own[data.state[inside]]), 1)
    first, source, counts = grouped.predecessors
    found = np.zeros((count, count))
    for group in range(count):
        found[group, source[first[group] : first[group + 1]]] = counts[first[group] : first[group + 1]]
    np.testing.assert_array_equal(found, expected)
    values = rng.normal(size=(len(data), 2))
    means = grouped.means_by_state(values)
    for group in np.flatnonzero(grouped.labelable):
        np.testing.assert_allclose(means[group], values[grouped.state == group].mean(axis=0), atol=1e-12)


def test_own_groups_of_vectors_follow_the_nearest_state():
    names = np.where(DATA.vectors.values[:, 0] > 0, "right", "left")
    grouped = selectenv.group_states(DATA, names)
    assert grouped.ids.tolist() == ["left", "right"]
    np.testing.assert_array_equal(grouped.ids[grouped.locate(DATA.vectors.values)], names)
    assert grouped.ids[grouped.locate(np.array([[50.0, 0, 0]]))[0]] == "right"


def test_episodes_are_groups_and_tables_have_cells():
    grouped = selectenv.group_states(DATA, "episode")
    assert grouped.n_states == int(DATA.episode_start.sum())
    assert (np.diff(grouped.state) == DATA.episode_start[1:]).all()
    assert grouped.cells.n_states == min(200, DATA.n_states)
    np.testing.assert_array_equal(grouped.cells.groups.cell[DATA.state], grouped.cells.state)
    labels = np.zeros(grouped.n_states, bool)
    labels[3] = True
    np.testing.assert_array_equal(
        np.flatnonzero(grouped.labelled_cells(labels)), np.unique(grouped.cells.state[grouped.state == 3])
    )


@pytest.mark.parametrize("groups", [7, "episode", np.arange(DATA.n_states) % 5, None])
def test_groups_are_stored(groups, tmp_path):
    data = DATA if groups is None else selectenv.group_states(DATA, groups)
    back = load(save(data, tmp_path / "data.npz"))
    assert back.fingerprint == data.fingerprint
    assert dict(back.spec) == dict(data.spec)
    some = DATA.vectors.values[:20] + np.float32(0.1)
    np.testing.assert_array_equal(back.locate(some), data.locate(some))
    np.testing.assert_array_equal(back.cells.state, data.cells.state)
    np.testing.assert_array_equal(back.hidden_reward, data.hidden_reward)
    assert back.base.vectors.columns == DATA.vectors.columns


def test_groups_depend_on_what_they_are():
    prints = {selectenv.group_states(DATA, groups).fingerprint for groups in (3, 4, "episode")}
    assert len(prints | {DATA.fingerprint}) == 4
    assert selectenv.group_states(DATA, 4, seed=1).fingerprint != selectenv.group_states(DATA, 4).fingerprint


def test_nothing_leads_from_groups_to_hidden_rewards():
    for groups in (4, "episode"):
        seen = selectenv.group_states(DATA, groups).without_rewards
        assert not any(data.has_rewards for data in (seen, seen.base, seen.cells))


def test_clusters_do_not_depend_on_the_number_of_threads():
    code = (
        "from tests.selectenv.datasets.test_grouping import vector_data; import selectenv;"
        "print(selectenv.group_states(vector_data(1, 9_000), 40).fingerprint)"
    )
    prints = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": "/usr/bin", **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), threads)},
        ).stdout
        for threads in ("1", "2")
    }
    assert len(prints) == 1


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        (DATA.n_states + 1, OptionError, "number of clusters from 1 to"),
        (0, OptionError, "number of clusters from 1 to"),
        ("episodes", UnknownNameError, "Did you mean 'episode'"),
        (2.5, OptionError, "groups must be None, a number of clusters"),
        ([1, 2], OptionError, "one per state"),
        (np.full(DATA.n_states, np.nan), OptionError, "integers or strings"),
        (True, OptionError, "groups must be None"),
        (np.nan, OptionError, "groups must be None"),
        (np.zeros((DATA.n_states, 2)), OptionError, r"not an array of float64 with shape \(\d+, 2\)"),
        ("20", UnknownNameError, "Did you mean the number 20"),
        ("-1", UnknownNameError, "a number of clusters, .* Did you mean the number -1"),
    ],
)
def test_groups_that_cannot_be_used(groups, error, message):
    with pytest.raises(error, match=message):
        selectenv.group_states(DATA, groups)


@pytest.mark.parametrize("groups", [3, "episode"])
def test_seeds_that_cannot_be_used(groups):
    for seed in (-1, 1.5, None):
        with pytest.raises(OptionError, match="seed must be a whole number"):
            selectenv.group_states(DATA, groups, seed=seed)


def test_groups_of_other_data():
    plain = selectenv.make_problem("Tree", dataset_size=100, cache=False).dataset
    with pytest.raises(OptionError, match="these states have none"):
        selectenv.group_states(plain, 3)
    with pytest.raises(OptionTypeError):
        selectenv.group_states("data", 3)
    with pytest.raises(DatasetError, match="no observations"):
        plain.locate(np.zeros((1, 2)))


@pytest.mark.parametrize("groups", [3, "episode", np.arange(DATA.n_states) % 5])
def test_groups_are_taken_apart_before_others_are_made(groups):
    grouped = selectenv.group_states(DATA, groups)
    assert repr(grouped).endswith(
        f"{grouped.n_states} {'episode' if isinstance(groups, str) else 'group'}s, hidden rewards>"
    )
    for nothing in (None, "state"):
        assert selectenv.group_states(grouped, nothing).fingerprint == DATA.fingerprint
        assert selectenv.group_states(DATA, nothing) is DATA
    again = selectenv.group_states(grouped, 7)
    assert again.fingerprint == selectenv.group_states(DATA, 7).fingerprint
    np.testing.assert_array_equal(again.hidden_reward, DATA.hidden_reward)
    assert not selectenv.group_states(grouped.without_rewards, 7).has_rewards
    assert selectenv.make_problem(dataset=grouped, groups=4).n_states == 4
    assert selectenv.make_problem(dataset=grouped).n_states == grouped.n_states


def test_vectors_are_checked():
    good = np.zeros((3, 2), np.float32)
    with pytest.raises(DatasetError, match="column 'x1' of state number 2 is nan"):
        Vectors(np.array([[0, 0], [0, 0], [0, np.nan]], np.float32))
    for wrong in (good.astype(float), good[0], np.zeros((3, 0), np.float32), "vectors"):
        with pytest.raises(DatasetError, match="float32"):
            Vectors(wrong)
    for names in (("a",), ("a", "a")):
        with pytest.raises(DatasetError, match="2 different names"):
            Vectors(good, names)
    with pytest.raises(DatasetError, match="there are 3 observations of"):
        replace(DATA, observations=Vectors(good))
    with pytest.raises(OptionTypeError, match="Images or Vectors"):
        replace(DATA, observations=good)
    for wrong, message in (
        (np.zeros((1, 4)), r"a vector of 3 numbers \(x0, x1, x2\), not float64\[4\]"),
        (np.zeros(3), r"shape \[count, 3\], not \[3\]: put a single vector into a list"),
        ([[0, 0, np.inf]], "finite numbers"),
        ([[0, 0, 1e300]], "that fit into 32 bits"),
        ([["a", "b", "c"]], "a vector of 3 numbers"),
    ):
        with pytest.raises(ObservationError, match=message):
            DATA.vectors.check(wrong)


def test_exact_vectors_are_found():
    vectors = DATA.vectors
    np.testing.assert_array_equal(vectors.find(DATA.ids, vectors.values), np.arange(len(vectors)))
    assert vectors.find(DATA.ids, vectors.values[:2] + 1).tolist() == [-1, -1]
    zero = Vectors(np.zeros((1, 2), np.float32))
    assert zero.find(np.arange(1), np.array([[-0.0, 0.0]])).tolist() == [0]
    assert vectors[3].tolist() == vectors.values[3].tolist()


def test_large_vectors_are_memory_mapped(tmp_path):
    values = np.random.default_rng(0).normal(size=(70_000, 4)).astype(np.float32)
    size = len(values) - 1
    data = OfflineDataset(
        ids=np.arange(size + 1),
        n_actions=1,
        state=np.arange(size, dtype=np.int32),
        action=np.zeros(size, np.int32),
        next_state=np.arange(1, size + 1, dtype=np.int32),
        terminated=np.zeros(size, bool),
        truncated=np.arange(size) == size - 1,
        episode_start=np.arange(size) == 0,
        hidden_reward=None,
        observations=Vectors(values, ("a", "b", "c", "d")),
    )
    back = load(save(data, tmp_path / "large.npz"))
    assert isinstance(back.vectors.values.base, np.memmap)
    np.testing.assert_array_equal(back.vectors.values, values)
