"""The range of unknown rewards, which the bounds of a session assume."""

from typing import Any

from selectenv.checks import shown
from selectenv.datasets.dataset import OfflineDataset
from selectenv.errors import AnswerRangeError, OptionError, OptionTypeError
from selectenv.evaluation.value_bounds import range_ends
from selectenv.labelling.label_store import LabelStore
from selectenv.typing import FloatArray

NOTE = "reward_range"
"""Name under which the file stores the range."""
Ends = tuple[FloatArray, FloatArray]
"""The lower and the upper end, [1], or [n] where they differ between states."""


def checked_ends(dataset: OfflineDataset, given: Any) -> Ends:
    """Return the ends of a range that is given as a pair.

    Raises:
        OptionError: it is not a pair, empty or not finite.
    """
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise OptionTypeError(f"reward_range must be a pair, (low, high), not {shown(given)}")
    return range_ends(dataset, *given)


class RewardRange:
    """The range that this process was given last, or else the one that the file stores."""

    def __init__(self, dataset: OfflineDataset, store: LabelStore) -> None:
        """Begin with the range that the file stores, if there is one."""
        self._dataset, self._store = dataset, store
        self._given: Ends | None = None

    @property
    def ends(self) -> Ends | None:
        """The range that calls without one use; None if there is none."""
        stored = self._store.note(NOTE) if self._given is None else None
        return self._given if stored is None else range_ends(self._dataset, *stored)

    def resolved(self, low: Any, high: Any) -> Ends:
        """Return the given range, or by default the current one.

        Raises:
            OptionError: it is empty or not finite, or there is none.
        """
        if (low is None) != (high is None):
            raise OptionError("give both low and high, the ends of the range of unknown rewards, or neither")
        ends = self.ends if low is None else range_ends(self._dataset, low, high)
        if ends is None:
            raise OptionError("the range of unknown rewards is not known: give its ends, low and high")
        return ends

    def use(self, ends: Ends) -> None:
        """Use a range in this process from now on."""
        self._given = ends

    def check(self, id: Any, state: int, rewards: FloatArray) -> None:
        """Check that the rewards of a state lie in the range that the file stores, if there is one.

        Raises:
            AnswerRangeError: one does not.
        """
        stored = self._store.note(NOTE)
        if stored is None:
            return
        low, high = (end[state if len(end) > 1 else 0] for end in stored)
        outside = rewards[(rewards < low) | (rewards > high)]
        if len(outside):
            raise AnswerRangeError(
                f"{outside[0]:g} is outside the range of the rewards of {shown(id)}, {low:g} to {high:g}; correct the "
                "answer, or widen the range first (session.set_reward_range(low, high), `selectenv label export FILE "
                "--rewards LOW HIGH`, or the page)"
            )

    def store(self, ends: Ends) -> None:
        """Store a range in the file, for all processes."""
        self._store.set_note(NOTE, [end.tolist() for end in ends])
        self._given = None
