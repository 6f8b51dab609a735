"""Budgets: the number of labels that an int, a share or a pair of shares stands for."""

import math
import warnings
from typing import Any

import numpy as np

from selectenv.checks import is_int, shown
from selectenv.errors import BudgetError, BudgetWarning, SelectEnvError


def number_of_labels(
    budget: Any, n: int, name: str = "budget", error: type[SelectEnvError] = BudgetError, most: float | None = None
) -> int:
    """Return the number of labels that a budget buys: an int is a number of labels, a float is a share of n.

    Args:
        budget: the number or the share.
        n: number of states.
        name: the name of the option, for error messages.
        error: the type of error to raise.
        most: the largest number allowed; n by default.

    Raises:
        SelectEnvError: of type ``error`` if the budget is neither an int from 1 to n nor a float in (0, 1].
    """
    most = n if most is None else most
    allowed = f"allowed: an int from 1 to {most} (labels) or a float above 0 and up to 1 (share of {n} states)"
    if is_int(budget):
        if not 1 <= budget <= most:
            raise error(f"{name}={shown(budget)} labels is out of range; {allowed}")
        return int(budget)
    if not isinstance(budget, float | np.floating):
        raise error(f"{name}={shown(budget)} is not a number; {allowed}")
    if not 0 < budget <= 1:
        hint = f" Did you mean the int {int(budget)}?" if math.isfinite(budget) and 1 < budget <= most else ""
        raise error(f"{name}={budget} as a share is out of range; {allowed}.{hint}")
    return max(1, math.floor(float(budget) * n + 1e-9))


def episode_labels(budget: Any, n: int, rng: np.random.Generator | None) -> int:
    """Return the number of labels of an episode; for a (low, high) pair, a share is drawn uniformly.

    Args:
        budget: an int, a float, or a (low, high) pair of floats.
        n: number of states that a share refers to.
        rng: random generator; None takes the larger share.

    Raises:
        BudgetError: the budget is something else.
    """
    if not isinstance(budget, tuple):
        return number_of_labels(budget, n)
    shares = len(budget) == 2 and all(isinstance(share, float | np.floating) for share in budget)
    if not shares or not 0 < budget[0] <= budget[1] <= 1:
        raise BudgetError(
            f"budget must be an int, a float in (0, 1], or a (low, high) pair of such floats with low <= high; got "
            f"{shown(budget)}"
        )
    return number_of_labels(budget[1] if rng is None else float(rng.uniform(*budget)), n)


def cap_to_labelable(labels: int, open_states: int) -> int:
    """Return the number of labels, reduced to the number of states that can be labelled.

    Warns:
        BudgetWarning: there are fewer such states than labels.
    """
    if labels <= open_states:
        return labels
    warnings.warn(
        f"the budget of {labels} labels is reduced to {open_states}, the number of states that occur in the data",
        BudgetWarning,
        stacklevel=5,
    )
    return open_states
