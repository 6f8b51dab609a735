"""The evaluator: policy -> expected return in the true world; it counts every call and can be locked."""

from dataclasses import astuple, dataclass
from typing import Any

from selectenv.checks import check_flag, check_instance, check_int, check_real, shown
from selectenv.errors import NoEvaluatorError, OptionError, OptionTypeError, PhaseError, PolicyError
from selectenv.evaluation.engine import ReturnEngine
from selectenv.policies import Policy, PolicyBatch, PolicyList
from selectenv.typing import FloatArray

PARTS = ("asked", "disclosed", "computed")


@dataclass
class Calls:
    """Counts of the performances that were disclosed, whether computed or cached.

    The `cost` of a strategy is the number of performances disclosed to it. The score of an episode that is being judged
    and evaluations by monitors are counted apart.
    """

    asked: int = 0
    """Evaluations that a strategy asked for."""
    disclosed: int = 0
    """Performances paid as rewards: one per episode with final rewards, one per step with marginal rewards."""
    computed: int = 0
    """Those of `asked` and `disclosed` that had to be computed."""
    uncounted: int = 0
    """Final scores of judged episodes, and evaluations by monitors."""

    @property
    def cost(self) -> int:
        """Number of performances disclosed to the strategy: those it asked for, and those paid as rewards."""
        return self.asked + self.disclosed

    def to_dict(self) -> dict[str, int]:
        """Return the parts of the cost, ready for JSON."""
        return {name: getattr(self, name) for name in PARTS}

    @classmethod
    def from_dict(cls, parts: Any) -> "Calls":
        """Return the counts that `to_dict` described.

        Raises:
            OptionError: they are something else.
        """
        if not isinstance(parts, dict) or set(parts) != set(PARTS):
            raise OptionError(f"counts of calls must be a dict with {', '.join(PARTS)}, not {shown(parts)}")
        return cls(**{name: check_int(name, parts[name], 0) for name in PARTS})

    def __add__(self, other: "Calls") -> "Calls":
        """Return the sum of two counts."""
        return Calls(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: "Calls") -> "Calls":
        """Return the calls that were made since an earlier count."""
        return Calls(*(a - b for a, b in zip(astuple(self), astuple(other), strict=True)))


class Evaluator:
    """Computes returns with an engine and counts the calls; while it is locked, calls raise `PhaseError`."""

    def __init__(
        self, engine: ReturnEngine | None, discount: float = 1.0, counts: Calls | None = None, *, locked: bool = False
    ) -> None:
        """Count the calls to ``engine``; without an engine, calls raise `NoEvaluatorError`.

        Args:
            engine: computes returns; None if there is no world.
            discount: discount factor of the reported return.
            counts: where to count; new counts by default.
            locked: whether calls raise `PhaseError`.
        """
        if engine is not None and not callable(getattr(engine, "returns", None)):
            raise OptionTypeError(f"engine needs a method returns(policies, discount), and {shown(engine)} has none")
        if isinstance(engine, type):
            raise OptionTypeError(
                f"engine must be an object such as ExactReturns(world), not the class {shown(engine)}"
            )
        self.engine, self.discount = engine, check_real("discount", discount, "(0, 1]")
        self.counts = Calls() if counts is None else check_instance("counts", counts, Calls)
        self.locked = check_flag("locked", locked)
        """Whether calls raise `PhaseError`."""

    @property
    def available(self) -> bool:
        """Whether there is a world to evaluate in."""
        return self.engine is not None

    @property
    def calls(self) -> int:
        """Number of evaluations that a strategy asked for."""
        return self.counts.asked

    def count(self, *, asked: int = 0, disclosed: int = 0, computed: int = 0, uncounted: int = 0) -> None:
        """Add to the counts.

        Raises:
            PhaseError: the evaluator is locked in the test phase.
        """
        self._check_unlocked()
        counts = self.counts
        counts.asked += check_int("asked", asked, 0)
        counts.disclosed += check_int("disclosed", disclosed, 0)
        counts.computed += check_int("computed", computed, 0)
        counts.uncounted += check_int("uncounted", uncounted, 0)

    def evaluate(self, policy: Policy, discount: float | None = None) -> float:
        """Return the expected return of one policy; counts as one call.

        Args:
            policy: a policy over the states of the dataset.
            discount: discount factor of rewards; defaults to the evaluator's own.

        Raises:
            PolicyError: the policy does not return action probabilities, or has other states than the world.
        """
        used = self.discount if discount is None else check_real("discount", discount, "(0, 1]")
        value = float(self.returns(PolicyList([policy]), used)[0])
        self.count(asked=1, computed=1)  # a call that raises is not counted
        return value

    def returns(self, policies: PolicyBatch, discount: float | None = None) -> FloatArray:
        """Return the expected return of each policy [policies], uncounted."""
        self._check_unlocked()
        engine = self._require_engine()
        if not hasattr(policies, "tables") or isinstance(policies, type):
            raise PolicyError(f"policies must be a batch, such as PolicyList([policy]), not {shown(policies)}")
        return engine.returns(
            policies, self.discount if discount is None else check_real("discount", discount, "(0, 1]")
        )

    def _check_unlocked(self) -> None:
        if self.locked:
            raise PhaseError("the evaluator is locked in the test phase until the episode has ended")

    def _require_engine(self) -> ReturnEngine:
        if self.engine is None:
            raise NoEvaluatorError("this problem has no evaluator: it was made from data without a world")
        return self.engine
