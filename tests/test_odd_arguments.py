"""Odd arguments: every call works, or raises one of our errors that is also a built-in exception."""

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from selectenv.errors import EpisodeError, SelectEnvError
from tests.odd_arguments import agent_calls, data_calls, library_calls, session_calls, vector_calls
from tests.odd_arguments import small_objects as small
from tests.odd_arguments.judge import Call, defect
from tests.odd_arguments.odd_values import ODD
from tests.stress import repetitions

CALLS = library_calls.CALLS + agent_calls.CALLS + data_calls.CALLS + session_calls.CALLS + vector_calls.CALLS
SLOW = ("Sb3Agent.train", "agents.make maskable-ppo")
"""Calls that take a second or more: only the full count tries them with many values."""


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let calls with odd paths write to a directory of their own."""
    monkeypatch.chdir(tmp_path)


def chosen(call: Call, argument: str) -> list[str]:
    """Return the names of the odd values to try: all of them, or a sample that differs from argument to argument."""
    names = list(ODD)
    count = repetitions(1 if call.name in SLOW else 4, len(names))
    first = zlib.crc32(f"{call.name} {argument}".encode())
    return [names[(first + i * 41) % len(names)] for i in range(count)]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_valid_arguments_work(call: Call) -> None:
    """Otherwise the odd ones would be refused for the wrong reason."""
    arguments = {name: make() for name, make in (call.fixed | call.arguments).items()}
    call.function(**arguments)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_one_odd_argument(call: Call) -> None:
    found = {
        f"{call.name}({argument}={name})": defect(call, {argument: ODD[name]})
        for argument in call.arguments
        for name in chosen(call, argument)
    }
    assert {where: what for where, what in found.items() if what} == {}


def anything() -> st.SearchStrategy[Callable[[], Any]]:
    """Return functions that return what nobody thought of."""
    atoms = st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text() | st.binary()
    nested = st.recursive(atoms, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
    arrays = hnp.arrays(
        hnp.array_dtypes() | hnp.scalar_dtypes(), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=8)
    )
    return (nested | arrays).map(lambda value: lambda: value)


@st.composite
def several_odd_arguments(draw: st.DrawFn) -> tuple[Call, dict[str, Callable[[], Any]]]:
    """Draw a call and odd values for some of its arguments."""
    call = draw(st.sampled_from([call for call in CALLS if call.name not in SLOW and call.arguments]))
    names = draw(st.lists(st.sampled_from(sorted(call.arguments)), min_size=1, max_size=3, unique=True))
    values = st.sampled_from(sorted(ODD)).map(ODD.__getitem__) | anything()
    return call, {name: draw(values) for name in names}


@settings(max_examples=repetitions(100, 5000))
@given(several_odd_arguments())
def test_several_odd_arguments(drawn: tuple[Call, dict[str, Callable[[], Any]]]) -> None:
    call, odd = drawn
    assert defect(call, odd) is None


@pytest.mark.parametrize("state", library_calls.STATES)
def test_environments_in_every_state(state: str) -> None:
    call = Call(f"an environment, {state}", library_calls.environment, {}, gymnasium=True)
    assert defect(call, {"make": lambda: library_calls.STATES[state]}) is None


def test_odd_actions_leave_the_episode_as_it_was() -> None:
    env = small.env()
    for name, make in ODD.items():
        before = env.labels_spent, env.labelled_at.copy()
        try:
            env.step(make())
        except SelectEnvError:
            assert env.labels_spent == before[0], name
            np.testing.assert_array_equal(env.labelled_at, before[1])
        else:
            env.reset(seed=0)
    with pytest.raises(EpisodeError):
        small.finished_env().step(0)
