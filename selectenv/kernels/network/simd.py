"""SIMD vectors of 16 and 64 floats in compiled loops: kernels state which operations are done side by side.

The compiler splits a vector into registers of the machine. All operations are done in the order of the source, with a
fused multiplication and addition if the machine has one, so results do not depend on what the compiler chooses to
vectorise or to inline.
"""

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.datamodel.registry import register_default
from numba.core.errors import TypingError
from numba.extending import intrinsic

from selectenv.typing import Float32Array

Vector = Any
"""A vector; there are no vectors outside of compiled code."""
LINE = 64
"""Bytes of a cache line."""
_FLOAT, _INDEX = ir.FloatType(), ir.IntType(32)
_intrinsic = cast(Callable[[Callable[..., Any]], Callable[..., Any]], intrinsic)
"""Decorator of functions that return a signature and a generator of code; callers leave out the first argument."""


def aligned_zeros(*shape: int) -> Float32Array:
    """Return zeros [*shape] whose rows of 16 are cache lines: vectors that straddle two lines are slow."""
    size = math.prod(shape)
    room = np.zeros(size + LINE // 4, np.float32)
    skipped = -room.ctypes.data % LINE // 4
    return room[skipped : skipped + size].reshape(shape)


class _Vector(types.Type):
    """Numba's type of a vector of float32."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.ir = ir.VectorType(_FLOAT, width)
        self.zero = ir.Constant(self.ir, [0.0] * width)
        super().__init__(name=f"float32x{width}")


@register_default(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: _Vector) -> None:
        super().__init__(manager, vector, vector.ir)  # type: ignore[no-untyped-call]


def _check_array(array: Any) -> None:
    if not isinstance(array, types.Array) or array.dtype != types.float32 or array.layout != "C":
        raise TypingError(f"vectors are kept in contiguous arrays of float32, not in {array}")


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, at: Any, vector: _Vector) -> Any:
    """Return the address of element ``at`` of an array, counted through all of its axes."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), vector.ir.as_pointer())


def _shuffled(builder: Any, first: Any, second: Any, lanes: Any) -> Any:
    """Return elements of two vectors, by number; those of the second are numbered after those of the first."""
    chosen = list(lanes)
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(_INDEX, len(chosen)), chosen))


def _equal(builder: Any, number: Any, vector: _Vector) -> Any:
    """Return a vector of equal elements."""
    one = builder.insert_element(ir.Constant(vector.ir, ir.Undefined), number, _INDEX(0))
    return _shuffled(builder, one, one, [0] * vector.width)


def _load(vector: _Vector) -> Callable[..., Any]:
    @_intrinsic
    def load(typing_context: Any, array: Any, at: Any) -> Any:
        """Return the vector that starts at element ``at`` of an array, counted through all of its axes."""
        _check_array(array)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            values, at = arguments
            return builder.load(_pointer(context, builder, array, values, at, vector), align=4)

        return vector(array, types.intp), generate

    return load


def _store(vector: _Vector) -> Callable[..., Any]:
    @_intrinsic
    def store(typing_context: Any, array: Any, at: Any, values: Any) -> Any:
        """Write a vector to an array, from element ``at`` on."""
        _check_array(array)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            into, at, values = arguments
            builder.store(values, _pointer(context, builder, array, into, at, vector), align=4)
            return context.get_dummy_value()

        return types.void(array, types.intp, vector), generate

    return store


def _zeros(vector: _Vector) -> Callable[..., Any]:
    @_intrinsic
    def zeros(typing_context: Any) -> Any:
        """Return a vector of zeros."""
        return vector(), lambda context, builder, signature, arguments: vector.zero

    return zeros


_SHORT, _LONG = _Vector(16), _Vector(64)
load16, store16, zeros16 = _load(_SHORT), _store(_SHORT), _zeros(_SHORT)
load64, store64, zeros64 = _load(_LONG), _store(_LONG), _zeros(_LONG)


@_intrinsic
def prefetch(typing_context: Any, array: Any, at: Any) -> Any:
    """Fetch the cache line of element ``at`` of an array, counted through all of its axes; it may lie outside."""
    _check_array(array)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, at = arguments
        pointer = context.make_array(array)(context, builder, values).data
        pointer = builder.bitcast(builder.gep(pointer, [at]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type] + [_INDEX] * 3)
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
        builder.call(function, [pointer, _INDEX(0), _INDEX(3), _INDEX(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@_intrinsic
def add(typing_context: Any, left: Any, right: Any) -> Any:
    """Return the sum of two vectors."""
    return left(left, right), lambda context, builder, signature, arguments: builder.fadd(*arguments)


@_intrinsic
def subtract(typing_context: Any, left: Any, right: Any) -> Any:
    """Return the difference of two vectors."""
    return left(left, right), lambda context, builder, signature, arguments: builder.fsub(*arguments)


@_intrinsic
def add_product(typing_context: Any, total: Any, left: Any, right: Any) -> Any:
    """Return ``total + left * right``, rounded once if the machine can do so; ``left`` may be a number."""
    is_vector = isinstance(left, _Vector)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total, left, values = arguments
        kind = ir.FunctionType(right.ir, [right.ir] * 3)
        name = f"llvm.fmuladd.v{right.width}f32"
        function = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
        return builder.call(function, [left if is_vector else _equal(builder, left, right), values, total])

    return right(right, right if is_vector else types.float32, right), generate


@_intrinsic
def sum_of(typing_context: Any, vector: Any) -> Any:
    """Return the sum of the elements of a vector: the halves are added until one element is left."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (values,), width = arguments, vector.width
        while width > 1:
            width //= 2
            halves = range(width), range(width, 2 * width)
            values = builder.fadd(*(_shuffled(builder, values, values, half) for half in halves))
        return builder.extract_element(values, _INDEX(0))

    return types.float32(vector), generate


@_intrinsic
def where_positive(typing_context: Any, sign: Any, vector: Any) -> Any:
    """Return a vector with 0 in place of the elements for which ``sign`` is not positive."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sign, values = arguments
        return builder.select(builder.fcmp_ordered(">", sign, vector.zero), values, vector.zero)

    return vector(vector, vector), generate


@_intrinsic
def positive_bits(typing_context: Any, vector: Any) -> Any:
    """Return a word in which bit i is set if element i is positive."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(builder.fcmp_ordered(">", arguments[0], vector.zero), ir.IntType(vector.width))
        return builder.zext(bits, ir.IntType(64)) if vector.width < 64 else bits

    return types.uint64(vector), generate


@_intrinsic
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """Return the number of the lowest bit that is set in a word other than 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@_intrinsic
def transpose16(typing_context: Any, source: Any, at: Any, step: Any, into: Any, to: Any, into_step: Any) -> Any:
    """Write a block of 16 x 16 elements of an array to another one, transposed.

    Args:
        typing_context: numba's.
        source: the array of the block.
        at: the first element of the block.
        step: elements from one row of the block to the next.
        into: the array that receives the transposed block.
        to: the first element of the transposed block.
        into_step: elements from one row of the transposed block to the next.
    """
    _check_array(source)
    _check_array(into)
    width = _SHORT.width

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source_value, at, step, into_value, to, into_step = arguments
        rows = []
        for _ in range(width):
            rows.append(builder.load(_pointer(context, builder, source, source_value, at, _SHORT), align=4))
            at = builder.add(at, step)
        for apart in (8, 4, 2, 1):  # swap the upper right and the lower left quarter of blocks of 2 * apart rows
            upper = [lane if not lane & apart else width + lane - apart for lane in range(width)]
            lower = [lane + apart if not lane & apart else width + lane for lane in range(width)]
            for i in (i for i in range(width) if not i & apart):
                pair = rows[i], rows[i + apart]
                rows[i], rows[i + apart] = (_shuffled(builder, *pair, lanes) for lanes in (upper, lower))
        for values in rows:
            builder.store(values, _pointer(context, builder, into, into_value, to, _SHORT), align=4)
            to = builder.add(to, into_step)
        return context.get_dummy_value()

    number = types.intp
    return types.void(source, number, number, into, number, number), generate
