"""How loops are compiled: cached on disk, without the GIL, with IEEE semantics except for fused multiply-add."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import event
from numba.extending import overload

from selectenv.kernels.threads import is_worker_process

F = TypeVar("F", bound=Callable[..., Any])
SOURCES = tuple(
    (str(path.relative_to(path.parents[1])), path.stat().st_mtime_ns, path.stat().st_size)
    for path in sorted(Path(__file__).parent.rglob("*.py"))
)
"""Names, times and sizes of all source files of kernels."""
EXACT_PART: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract"},
    "forceinline": True,
}


def _cached(function: F, **options: Any) -> F:
    """Compile ``function`` at its first call, and keep the result on disk until any source file of kernels changes.

    Numba would only notice changes of the file of ``function``, but kernels contain parts from other files.
    """
    compiled = numba.njit(cache=True, **options)(function)
    cached = compiled._cache._cache_file
    cached._source_stamp = (cached._source_stamp, SOURCES)
    return cast(F, compiled)


def kernel(function: F) -> F:
    """Compile ``function`` at its first call.

    Floating-point operations are never reordered, so one lane of a batch and a batch of one give the same bits.
    """
    return _cached(function, nogil=True, error_model="numpy", fastmath={"contract"})


def inlined(function: F) -> F:
    """Copy ``function`` into every kernel that calls it; otherwise the same as `kernel`.

    A part of a kernel that is seldom called from Python is cheaper to compile this way than as a kernel of its own.
    """
    return _cached(function, inline="always", nogil=True, error_model="numpy", fastmath={"contract"})


def summing_kernel(function: F) -> F:
    """Compile ``function`` at its first call and allow sums in a different order, so that long sums are vectorised.

    The compiler chooses the order once: the same machine gives the same bits every time.
    """
    return _cached(function, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})


def exact_part(function: F) -> F:
    """Compile ``function`` into every kernel that calls it, with the arithmetic of `kernel`.

    The compiler inlines it before it optimises the caller, so a process that compiles a kernel and one that loads the
    parts from the cache run the same machine code.
    """
    return _cached(function, **EXACT_PART)


def summing_part(function: F) -> F:
    """Compile ``function`` into every kernel that calls it, with the arithmetic of `summing_kernel`."""
    return _cached(function, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"}, forceinline=True)


def part_by_type(parts: Mapping[type, Callable[..., Any]]) -> Callable[..., Any]:
    """Return a part of kernels that the compiler chooses by the type of its first argument.

    Args:
        parts: subclasses of `NamedTuple`, and the functions made by `exact_part` that take them.
    """

    def chosen_by_type(*arguments: Any) -> Any:
        """Call the part for the type of the first argument from Python."""
        return parts[type(arguments[0])](*arguments)

    def choose(*arguments: Any) -> Any:
        return cast(Any, parts[arguments[0].instance_class]).py_func

    overload(chosen_by_type, jit_options=cast(Any, EXACT_PART), strict=False)(choose)
    return chosen_by_type


class _CompileNotice(event.Listener):
    """Tell the user once per process that kernels are being compiled; loading them from the cache prints nothing."""

    def __init__(self) -> None:
        self._told = False

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if self._told or not function.__module__.startswith(f"{__package__}.") or is_worker_process():
            return
        self._told = True
        if sys.stderr is not None:
            print(
                f"selectenv: compiling numba kernels for this machine, `{function.__name__}` first; "
                "each is compiled once, at its first use, which takes 10 seconds or more ...",
                file=sys.stderr,
                flush=True,
            )

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _CompileNotice())  # type: ignore[no-untyped-call]
