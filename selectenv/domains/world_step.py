"""One step in several episodes of a world that are played side by side."""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from selectenv.typing import BoolArray, FloatArray


class WorldStep(NamedTuple):
    """The result of one step in each of several episodes."""

    reward: FloatArray
    """[episodes]"""
    terminated: BoolArray
    """[episodes]"""
    truncated: BoolArray
    """[episodes] False where the episode terminated."""
    entered: NDArray[Any]
    """[episodes, ...] the observations after the step, also where an episode is over."""
