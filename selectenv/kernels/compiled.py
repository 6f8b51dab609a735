"""The one way loops are compiled here: cached on disk, GIL released, IEEE semantics but for fused multiply-add."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile ``function`` at its first call.

    Floating-point operations are never reordered, so a lane of a batch and a batch of one give the same bits.
    """
    compile_ = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
    return cast(F, compile_(function))


def summing_kernel(function: F) -> F:
    """Compile ``function`` at its first call, free to sum in another order, so that long sums are vectorised.

    The order is chosen once, by the compiler: the same machine gives the same bits every time.
    """
    compile_ = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
    return cast(F, compile_(function))
