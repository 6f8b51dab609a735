"""What a learner from limited feedback is: dataset + labelled states -> policy."""

from dataclasses import dataclass
from typing import Protocol

from selectenv.typing import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned from one set of labels; arrays are read-only."""

    q: FloatArray
    """[n, actions] action values; NaN for excluded actions."""
    values: FloatArray
    """[n] value of the best action."""
    policy: FloatArray
    """[n, actions] action probabilities; equally good actions share alike."""

    def __post_init__(self) -> None:
        """Protect the arrays: they are handed out without copies."""
        for array in (self.q, self.values, self.policy):
            array.flags.writeable = False


class Learner(Protocol):
    """The interface of all learners. Learning is a function of the label set alone."""

    @property
    def gamma(self) -> float:
        """Discount of learning."""

    @property
    def sets_per_chunk(self) -> int:
        """Label sets worth learning in one go by one thread."""

    def learn(self, labels: BoolArray) -> Learned:
        """Learn from one label set [n]."""

    def learn_policies(self, masks: BoolArray) -> FloatArray:
        """Learn from many label sets [sets, n] and return policies [blocks, n, actions, lanes].

        Set i is lane i % lanes of block i // lanes; lanes beyond the last set repeat it.
        """
