"""Invalid and unusual values of every type."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.odd_arguments import small_objects as small


class BrokenRepr:
    """An object that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


class BrokenArray:
    """An object that claims to be an array and is none."""

    shape, ndim, dtype = (3,), 1, "float64"

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no array")

    def __len__(self) -> int:
        return 3

    def __getitem__(self, _: Any) -> Any:
        raise RuntimeError("no items")


class Half:
    """A number of somebody's own."""

    def __float__(self) -> float:
        return 0.5

    def __index__(self) -> int:
        return 1


def _numbers() -> Iterator[int]:
    yield from (0, 1, 2)


def _nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def _cyclic() -> list[Any]:
    found: list[Any] = [0, 1]
    found.append(found)
    return found


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


SCALARS: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "False": lambda: False,
    "0": lambda: 0,
    "1": lambda: 1,
    "-1": lambda: -1,
    "2**31": lambda: 2**31,
    "2**63": lambda: 2**63,
    "-2**63-1": lambda: -(2**63) - 1,
    "10**400": lambda: 10**400,
    "10**5000": lambda: 10**5000,
    "0.5": lambda: 0.5,
    "-0.0": lambda: -0.0,
    "1.5": lambda: 1.5,
    "-1e308": lambda: -1e308,
    "5e-324": lambda: 5e-324,
    "1e400": lambda: float("inf"),
    "-inf": lambda: float("-inf"),
    "nan": lambda: float("nan"),
    "complex": lambda: 1 + 2j,
    "float16": lambda: np.float16(0.5),
    "float16 nan": lambda: np.float16("nan"),
    "longdouble": lambda: np.longdouble("1e4000"),
    "int8": lambda: np.int8(1),
    "uint64": lambda: np.uint64(2**64 - 1),
    "bool_": lambda: np.bool_(True),
    "str_": lambda: np.str_("uds"),
    "datetime64": lambda: np.datetime64("2020-01-01"),
    "timedelta64": lambda: np.timedelta64(3),
    "void": lambda: np.zeros((), "i4,f8")[()],
    "NaT": lambda: np.datetime64("NaT"),
    "own number": Half,
    "object": object,
    "NotImplemented": lambda: NotImplemented,
    "Ellipsis": lambda: ...,
    "broken repr": BrokenRepr,
    "class": lambda: dict,
    "own class": lambda: Half,
    "lambda": lambda: lambda: 0,
    "lambda of one": lambda: lambda _: 0,
    "function": lambda: len,
    "module": lambda: np,
    "exception": lambda: ValueError("odd"),
}
TEXTS: dict[str, Callable[[], Any]] = {
    "empty str": lambda: "",
    "str": lambda: "odd",
    "number as str": lambda: "3",
    "nan as str": lambda: "nan",
    "NUL": lambda: "a\0b",
    "surrogate": lambda: "odd\udcff",
    "long str": lambda: "x" * 5000,
    "braces": lambda: "{0} %s %(a)d",
    "newline": lambda: "a\nb",
    "bytes": lambda: b"odd",
    "bytearray": lambda: bytearray(b"odd"),
    "min": lambda: "min",
    "train": lambda: "train",
}
COLLECTIONS: dict[str, Callable[[], Any]] = {
    "empty list": list,
    "empty tuple": tuple,
    "empty dict": dict,
    "empty set": set,
    "list": lambda: [0, 1, 2],
    "tuple": lambda: (0, 1),
    "pair of floats": lambda: (0.1, 0.4),
    "pair of nan": lambda: (float("nan"), 0.4),
    "set": lambda: {0, 1},
    "frozenset": lambda: frozenset({0}),
    "range": lambda: range(3),
    "dict": lambda: {"a": 1},
    "dict of ints": lambda: {0: [0]},
    "dict values": {0: 0, 1: 1}.values,
    "generator": _numbers,
    "map": lambda: map(int, "012"),
    "list of None": lambda: [None, None],
    "list of str": lambda: ["a", "b"],
    "mixed list": lambda: [1, "a", None],
    "ragged list": lambda: [[0, 1], [2]],
    "nested list": lambda: _nested(100),
    "cyclic list": _cyclic,
    "list of floats": lambda: [0.0, 1.0],
    "list of nan": lambda: [float("nan")] * 7,
    "list of huge": lambda: [10**400, 1],
    "list of 2**63": lambda: [2**63, 0],
    "list of bool": lambda: [True] * 7,
    "negative list": lambda: [-1, 0],
}
ARRAYS: dict[str, Callable[[], Any]] = {
    "empty array": lambda: np.empty(0),
    "empty ints": lambda: np.empty(0, np.int64),
    "empty 2-d": lambda: np.empty((0, 7), bool),
    "empty columns": lambda: np.empty((3, 0)),
    "0-d int": lambda: np.array(1),
    "0-d float": lambda: np.array(0.5),
    "0-d nan": lambda: np.array(np.nan),
    "0-d object": lambda: np.array(None),
    "0-d str": lambda: np.array("odd"),
    "ints": lambda: np.arange(7),
    "floats": lambda: np.linspace(0, 1, 7),
    "bools": lambda: np.ones(7, bool),
    "wrong length": lambda: np.zeros(5, bool),
    "nan array": lambda: np.full(7, np.nan),
    "inf array": lambda: np.full(7, np.inf),
    "huge floats": lambda: np.full(7, 1e308),
    "negative ints": lambda: -np.arange(7),
    "large ints": lambda: np.full(7, 2**62),
    "object array": lambda: np.array([0, None, "a"], object),
    "object ints": lambda: np.arange(7).astype(object),
    "ragged array": lambda: np.array([[0], [0, 1]], object),
    "3-d": lambda: np.zeros((2, 3, 4)),
    "3-d bool": lambda: np.zeros((2, 7, 2), bool),
    "2-d bool": lambda: np.zeros((2, 7), bool),
    "2-d int": lambda: np.zeros((7, 2), np.int64),
    "2-d float": lambda: np.full((7, 2), 0.5),
    "read-only": lambda: _read_only(np.zeros(7, bool)),
    "read-only floats": lambda: _read_only(np.full((7, 2), 0.5)),
    "non-contiguous": lambda: np.zeros((7, 2), bool)[:, 0],
    "non-contiguous floats": lambda: np.full((2, 7), 0.5).T,
    "reversed": lambda: np.arange(7)[::-1],
    "float16 array": lambda: np.linspace(0, 1, 7).astype(np.float16),
    "float32 array": lambda: np.linspace(0, 1, 7).astype(np.float32),
    "longdouble array": lambda: np.full(7, np.longdouble("1e4000")),
    "complex array": lambda: np.full(7, 1j),
    "int8 array": lambda: np.arange(7, dtype=np.int8),
    "uint8 array": lambda: np.arange(7, dtype=np.uint8),
    "uint64 array": lambda: np.full(7, 2**64 - 1, np.uint64),
    "big-endian": lambda: np.arange(7, dtype=">i4"),
    "datetime64 array": lambda: np.zeros(7, "M8[s]"),
    "timedelta64 array": lambda: np.zeros(7, "m8[s]"),
    "structured": lambda: np.zeros(7, "i4,f8"),
    "str array": lambda: np.full(7, "odd"),
    "bytes array": lambda: np.full(7, b"odd"),
    "masked array": lambda: np.ma.masked_array(np.arange(7), np.arange(7) > 3),
    "matrix-like": lambda: memoryview(np.arange(7)),
    "broken array": BrokenArray,
    "a dtype": lambda: np.dtype("f8"),
    "a generator of numpy": lambda: np.random.default_rng(0),
}
MIXED_UP: dict[str, Callable[[], Any]] = {
    "problem": small.problem,
    "problem of another world": small.other_problem,
    "dataset": small.dataset,
    "dataset of another world": lambda: small.other_problem().dataset,
    "dataset without rewards": small.dataset_without_rewards,
    "world": small.world,
    "world of another problem": lambda: small.other_problem().evaluator.engine.world,  # type: ignore[union-attr]
    "environment": small.env,
    "closed environment": small.closed_env,
    "finished environment": small.finished_env,
    "environment without reset": small.fresh_env,
    "toy-text environment": small.toy_text_env,
    "vector environment": small.other_env,
    "agent": small.agent,
    "foreign agent": small.foreign_agent,
    "agent class": lambda: type(small.foreign_agent()),
    "learner": lambda: small.problem().learner,
    "evaluator": lambda: small.problem().evaluator,
    "policy": lambda: small.problem().learn([0]).policy,
    "policy of another world": lambda: small.other_problem().learn([0]).policy,
    "fit result": lambda: small.problem().learn([0]),
    "view": lambda: small.env().view(),
    "view of another world": small.view_of_another_world,
    "observation": small.observation,
    "info": small.info,
    "layout": lambda: small.world().layout,
}
PATHS: dict[str, Callable[[], Any]] = {
    "directory": small.folder,
    "directory as str": lambda: str(small.folder()),
    "missing file": lambda: small.folder() / "missing" / "deep.npz",
    "missing .zip": lambda: small.folder() / "missing.zip",
    "below a file": lambda: small.text_file() / "x.npz",
    "text file": small.text_file,
    "dataset file": small.dataset_file,
    "agent file": small.agent_file,
    "kernel directory": lambda: Path("/proc/odd/x.npz"),
    "NUL path": lambda: Path("a\0b.npz"),
    "long path": lambda: small.folder() / ("x" * 300),
    "dot": Path,
}
ODD = SCALARS | TEXTS | COLLECTIONS | ARRAYS | MIXED_UP | PATHS
