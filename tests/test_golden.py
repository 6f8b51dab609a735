"""The promise of versioned ids: for fixed options and seeds, observations, masks and returns stay as they are."""

import json

import gymnasium as gym
import pytest

import selectenv
from tests.golden.records import FOLDER, differences, file_of, record, registered, tolerance

SHOWN = 5


def kept(env_id):
    return json.loads(file_of(env_id).read_text(encoding="utf-8"))


@pytest.mark.parametrize("env_id", registered())
def test_results_of_an_id_have_not_changed(env_id):
    found = list(differences(record(env_id), kept(env_id), tolerance(env_id)))
    shown = "\n".join(found[:SHOWN])
    assert not found, (
        f"{env_id} no longer gives the results of {file_of(env_id).name}; {len(found)} entries differ:\n{shown}\n"
        "An id keeps its results: undo the change, or raise the version of the id as CONTRIBUTING.md explains. If the "
        f"results were wrong and the version has been raised, run `python -m tests.golden {env_id}`."
    )


def test_every_registered_id_has_a_golden_file_and_no_file_is_left_over():
    own = {env_id for env_id, spec in gym.registry.items() if str(spec.entry_point).startswith("selectenv.factory:")}
    assert set(registered()) <= own
    assert {path.name for path in FOLDER.glob("*.json")} == {file_of(env_id).name for env_id in registered()}


def test_a_changed_number_of_a_table_is_reported():
    env_id = selectenv.env_id("Graph")
    changed = kept(env_id)
    changed["adapted sampled"]["steps"][2]["observation"]["value"][1] += 1e-9
    changed["uds exact"]["steps"][1]["mask"] = "00"
    found = list(differences(changed, kept(env_id), tolerance(env_id)))
    assert [line.partition(":")[0] for line in found] == [
        "/uds exact/steps/1/mask",
        "/adapted sampled/steps/2/observation/value/1",
    ]


@pytest.mark.parametrize(("shift", "reported"), [(1e-3, True), (1e-6, False)])
def test_networks_may_differ_in_the_last_bits_only(shift, reported):
    env_id = selectenv.env_id("CartPole")
    changed = kept(env_id)
    changed["iql"]["states"][0][0] += shift
    assert bool(list(differences(changed, kept(env_id), tolerance(env_id)))) == reported


def test_entries_that_appear_or_disappear_are_reported():
    assert list(differences({"a": 1.0}, {"b": [1.0]}, 1e-4)) == ["/b: None instead of [1.0]", "/a: 1.0 instead of None"]
    assert list(differences([1.0], [1.0, 2.0], 1e-4)) == [": [1.0] instead of [1.0, 2.0]"]
