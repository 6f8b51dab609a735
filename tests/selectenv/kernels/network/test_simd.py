"""SIMD vectors in compiled loops, against NumPy."""

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from selectenv.kernels.network import simd
from selectenv.kernels.network.simd import (
    add,
    add_product,
    aligned_zeros,
    load16,
    load64,
    lowest_bit,
    positive_bits,
    prefetch,
    store16,
    store64,
    subtract,
    sum_of,
    transpose16,
    where_positive,
    zeros16,
)


def normal(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def test_arithmetic_is_done_element_by_element():
    @njit
    def compute(a, out):
        x, y = load64(a, 64), load64(a, 0)
        store64(out, 0, add(x, y))
        store64(out, 64, subtract(x, y))
        store64(out, 128, add_product(x, y, y))
        store64(out, 192, add_product(x, np.float32(2), y))
        store64(out, 256, where_positive(x, y))
        store16(out, 320, zeros16())
        return sum_of(x), positive_bits(x), positive_bits(load16(a, 0)), lowest_bit(positive_bits(x))

    a, out = normal(2, 64), np.full((21, 16), np.nan, np.float32)
    total, bits, few, lowest = compute(a, out)
    y, x = a
    wanted = [x + y, x - y, x + y * y, x + 2 * y, np.where(x > 0, y, 0), np.zeros(16)]
    np.testing.assert_allclose(out.ravel(), np.concatenate(wanted), rtol=1e-6, atol=1e-6)
    assert total == pytest.approx(x.sum(), abs=1e-5)
    assert [bits >> i & 1 for i in range(64)] == (x > 0).tolist()
    assert [few >> i & 1 for i in range(64)] == (y[:16] > 0).tolist() + [0] * 48
    assert lowest == np.argmax(x > 0)


def test_blocks_are_transposed():
    @njit
    def transpose(source, into):
        transpose16(source, 5, 40, into, 16, 32)

    source, into = normal(16, 40), np.zeros((17, 32), np.float32)
    transpose(source, into)
    wanted = np.zeros_like(into)
    wanted[:16, 16:] = source[:, 5:21].T
    np.testing.assert_array_equal(into, wanted)


def test_prefetching_changes_nothing():
    @njit
    def fetch(array):
        prefetch(array, 16)
        prefetch(array, 1 << 40)

    array = normal(4, 16)
    fetch(array)
    np.testing.assert_array_equal(array, normal(4, 16))


def test_rows_of_aligned_arrays_are_cache_lines():
    for shape in ((3,), (5, 16), (2, 3, 64)):
        array = aligned_zeros(*shape)
        assert array.shape == shape
        assert array.dtype == np.float32
        assert not array.any()
        assert array.ctypes.data % simd.LINE == 0


def test_other_arrays_are_refused():
    first = njit(lambda a: sum_of(load16(a, 0)))
    for wrong in (np.zeros(16), np.zeros((16, 2), np.float32)[:, 0]):
        with pytest.raises(TypingError, match="contiguous arrays of float32"):
            first(wrong)
