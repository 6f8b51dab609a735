"""User-defined objects by name: what is found, and the errors of names that lead nowhere."""

import numpy as np
import pytest

import selectenv
from selectenv.errors import ExtensionError, OptionError, OptionTypeError, SelectEnvError, UnknownNameError, WorldError
from selectenv.references import find_reference, is_reference

CORRIDOR = """
import numpy as np
import selectenv

NUMBER = 3

class Group:
    @staticmethod
    def inner():
        return selectenv.TABULAR["Graph"].make()

def corridor(length: int = 6):
    cells = np.arange(length)
    return selectenv.from_outcomes(
        "Corridor",
        state=np.repeat(cells, 2),
        action=np.tile([0, 1], length),
        probability=np.ones(2 * length),
        next_state=np.stack([np.maximum(cells - 1, 0), cells + 1], axis=1).ravel(),
        reward=np.stack([np.zeros(length), cells == length - 1], axis=1).ravel(),
        terminated=np.stack([cells < 0, cells == length - 1], axis=1).ravel(),
        start=cells == 0,
        horizon=4 * length,
    )

def number():
    return 3
"""


@pytest.fixture(autouse=True)
def modules(tmp_path, monkeypatch):
    """Write modules, and let them be found."""
    (tmp_path / "own_corridor.py").write_text(CORRIDOR)
    (tmp_path / "own_broken.py").write_text("1 / 0\n")
    (tmp_path / "own_exiting.py").write_text("import sys\nsys.exit(3)\n")
    (tmp_path / "own_lacking.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(tmp_path)


def test_a_function_names_a_world():
    assert is_reference("own_corridor:corridor")
    assert not is_reference("Tree")
    problem = selectenv.make_problem("own_corridor:corridor", length=4, dataset_size=200, cache=False)
    assert problem.n_states == 4
    env = selectenv.make_env("own_corridor:Group.inner", budget=2, dataset_size=200, cache=False)
    assert env.problem.n_states == 15
    with pytest.raises(UnknownNameError, match="Did you mean 'length'"):
        selectenv.make_problem("own_corridor:corridor", lenght=4)


def test_a_class_names_a_learner():
    problem = selectenv.make_problem("Graph", learner=f"{__name__}:Clone", dataset_size=200, cache=False)
    assert np.isfinite(problem.performance([0]))


class Clone:
    """A learner that repeats the data."""

    def fit(self, dataset, rewards):
        counts = np.zeros((dataset.n_states, dataset.n_actions)) + 1e-9
        np.add.at(counts, (dataset.state, dataset.action), 1)
        return selectenv.TablePolicy(counts / counts.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("own_corridors:corridor", ExtensionError, "no module 'own_corridors' .*did you mean 'own_corridor'"),
        ("own_corridor.inner:corridor", ExtensionError, "no module 'own_corridor.inner'"),
        ("own_corridor:coridor", UnknownNameError, "did you mean 'corridor'"),
        ("own_corridor:Group.iner", UnknownNameError, "did you mean 'inner'"),
        ("own_corridor:zzz", UnknownNameError, "has no world 'zzz'"),
        ("own_corridor:NUMBER", OptionTypeError, "must be a function that returns a world"),
        ("own_corridor:number", WorldError, "not int .returned by 'own_corridor:number'"),
        ("own_broken:thing", ExtensionError, "own_broken' cannot be imported: ZeroDivisionError"),
        ("own_exiting:thing", ExtensionError, "own_exiting' cannot be imported: SystemExit"),
        ("own_lacking:thing", ExtensionError, "own_lacking' cannot be imported: No module named 'no_such_module'"),
        (":", OptionError, "write module:name, for example my_module:my_world"),
        ("own_corridor:", OptionError, "write module:name"),
        (":corridor", OptionError, "write module:name"),
        ("own_corridor::corridor", OptionError, "write module:name"),
        ("..own_corridor:corridor", OptionError, "write module:name"),
        ("own_corridor:3", OptionError, "write module:name"),
    ],
)
def test_what_a_name_does_not_lead_to(name, error, message):
    with pytest.raises(error, match=message) as refused:
        selectenv.make_problem(name)
    assert isinstance(refused.value, SelectEnvError)


def test_attributes_of_objects_without_names():
    with pytest.raises(UnknownNameError, match=r"has no thing 'NUMBER\.zzz'"):
        find_reference("thing", "own_corridor:NUMBER.zzz")
