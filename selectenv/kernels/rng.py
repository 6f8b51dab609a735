"""SplitMix64: a random stream whose state is one 64-bit word, so that compiled loops need no global generator.

The state is a one-element uint64 array; drawing advances it by the golden-ratio increment and mixes the result
(Steele, Lea, Flood 2014, https://doi.org/10.1145/2714064.2660195).
"""

import numpy as np

from selectenv.kernels.compiled import inlined
from selectenv.typing import UintArray

INCREMENT = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
TO_UNIT = 1.0 / 9007199254740992.0  # 2^-53


@inlined
def mix(word: np.uint64) -> np.uint64:
    """Scramble a word so that consecutive words give unrelated results."""
    word = (word ^ (word >> np.uint64(30))) * MIX_1
    word = (word ^ (word >> np.uint64(27))) * MIX_2
    return word ^ (word >> np.uint64(31))


@inlined
def next_word(state: UintArray) -> np.uint64:
    """Draw 64 random bits."""
    state[0] += INCREMENT
    return mix(state[0])


@inlined
def next_unit(state: UintArray) -> float:
    """Draw a float uniformly from [0, 1)."""
    return np.float64(next_word(state) >> np.uint64(11)) * TO_UNIT


@inlined
def next_below(state: UintArray, bound: int) -> np.int64:
    """Draw an integer uniformly from 0..bound-1; the bias is negligible for bounds far below 2^32."""
    return np.int64(((next_word(state) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))
