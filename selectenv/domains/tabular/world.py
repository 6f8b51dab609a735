"""Tabular worlds: outcomes, a start distribution, a horizon and a layout, stored as arrays."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from selectenv.checks import (
    LARGEST_REWARD,
    as_array,
    as_ints,
    as_reals,
    check_instance,
    check_int,
    check_real,
    is_int,
    shown,
)
from selectenv.domains.layout import Layout, square_layout
from selectenv.errors import SelectEnvError, UnknownStateError, WorldError
from selectenv.kernels.tabular.model import Chain, Model, build_chain, build_model
from selectenv.kernels.tabular.returns import best_values
from selectenv.kernels.tabular.sample import Walk
from selectenv.typing import BoolArray, FloatArray, IntArray

PROBABILITY_TOLERANCE = 1e-9
COLUMNS = {
    **dict.fromkeys(("ids", "state", "action", "next_state"), np.int64),
    **dict.fromkeys(("probability", "reward", "start"), np.float64),
}
"""Types of the arrays of a world."""
MANY = 2**31 - 1
"""Upper limit on actions and on steps of an episode, which the compiled loops count in 32 bits."""


@dataclass(frozen=True, eq=False)
class TabularWorld:
    """A finite world over its reachable states, numbered 0..n-1; next state -1 means that the episode terminates.

    Build one with `from_outcomes`, which checks it, or with `from_toy_text`.
    """

    name: str
    ids: IntArray
    """[n] the world's own id of each state."""
    n_actions: int
    state: IntArray
    """[outcomes] number of the state acted in; sorted by state and action."""
    action: IntArray
    """[outcomes]"""
    probability: FloatArray
    """[outcomes]"""
    next_state: IntArray
    """[outcomes] number of the state entered, -1 where the episode terminates."""
    reward: FloatArray
    """[outcomes]"""
    start: FloatArray
    """[n] start distribution."""
    horizon: int
    """Number of steps after which an episode is truncated."""
    layout: Layout
    published_expert: BoolArray | None = field(default=None)
    """[n, actions] the expert's actions where the published data used a hand-made expert."""
    family = "tabular"

    def __post_init__(self) -> None:
        """Reject arrays that the compiled loops cannot handle."""
        check_instance("name", self.name, str)
        check_instance("layout", self.layout, Layout)
        actions = check_int("n_actions", self.n_actions, 1, MANY, WorldError)
        object.__setattr__(self, "n_actions", actions)  # compiled loops count in the type they are given
        object.__setattr__(self, "horizon", check_int("horizon", self.horizon, 1, MANY, WorldError))
        for name, dtype in COLUMNS.items():
            column = getattr(self, name)
            if not isinstance(column, np.ndarray) or column.dtype != dtype or column.ndim != 1:
                raise WorldError(
                    f"{name} must be a one-dimensional array of {np.dtype(dtype)}, not {shown(column)}: build worlds "
                    "with `from_outcomes`, which converts arrays of other types"
                )
        n, m = len(self.ids), len(self.state)
        columns = self.action, self.probability, self.next_state, self.reward
        if n == 0 or len(self.start) != n or any(len(column) != m for column in columns):
            raise WorldError("ids and start need one entry per state, the other arrays one entry per outcome")
        if n * actions > m:
            raise WorldError(f"{n} states with {actions} actions each need more than {m} outcomes")
        pair = self.state * actions + self.action
        every = np.array_equal(np.unique(pair), np.arange(n * actions)) and (np.diff(pair) >= 0).all()
        if not every or self.action.min() < 0 or self.action.max() >= actions:
            raise WorldError("outcomes must be sorted by state and action, and every action needs at least one")
        if self.next_state.min() < -1 or self.next_state.max() >= n:
            raise WorldError(f"next states must be state numbers in 0..{n - 1}, or -1 where the episode ends")
        total = np.bincount(pair, self.probability, n * actions)
        if not (self.probability >= 0).all() or (np.abs(total - 1) > PROBABILITY_TOLERANCE).any():
            raise WorldError("the probabilities of the outcomes of an action must be 0 or more and sum to 1")
        if not ((self.start >= 0) & (self.start < 2)).all() or abs(self.start.sum() - 1) > PROBABILITY_TOLERANCE:
            raise WorldError("the start distribution must be 0 or more and sum to 1")
        if not np.isfinite(self.reward).all():
            raise WorldError("rewards must be finite")
        if len(self.layout.positions) != n:
            raise WorldError(f"the layout places {len(self.layout.positions)} states, the world has {n}")
        expert = self.published_expert
        if expert is not None and not (
            isinstance(expert, np.ndarray) and expert.dtype == np.bool_ and expert.shape == (n, actions)
        ):
            raise WorldError(f"published_expert must be a boolean array of shape ({n}, {actions})")

    @property
    def n_states(self) -> int:
        """Number of states that can be labelled."""
        return len(self.ids)

    @cached_property
    def model(self) -> Model:
        """Expected rewards and transition probabilities in the format of the solvers."""
        return build_model(
            self.n_states, self.n_actions, self.state, self.action, self.next_state, self.probability, self.reward
        )

    @cached_property
    def chain(self) -> Chain:
        """The successor structure shared by all policies."""
        return build_chain(self.model)

    @cached_property
    def walk(self) -> Walk:
        """The world in the format of the samplers."""
        pair = self.state * self.n_actions + self.action
        first = np.searchsorted(pair, np.arange(self.n_states * self.n_actions + 1))
        cumulative = np.cumsum(self.probability)
        cumulative -= np.concatenate([[0.0], cumulative])[first[pair]]
        cumulative[first[1:] - 1] = 1.0
        start = np.cumsum(self.start)
        start[np.flatnonzero(self.start)[-1] :] = 1.0
        return Walk(
            first.astype(np.int32), cumulative, self.next_state.astype(np.int32), self.reward, start, self.horizon
        )

    def best_return(self, discount: float = 1.0) -> float:
        """Return the largest expected return of any policy, time-dependent ones included, within the horizon."""
        return self._extreme_return(self.model, check_real("discount", discount, "(0, 1]"))

    def worst_return(self, discount: float = 1.0) -> float:
        """Return the smallest expected return of any policy, time-dependent ones included, within the horizon."""
        model = self.model._replace(reward=-self.model.reward)
        return -self._extreme_return(model, check_real("discount", discount, "(0, 1]"))

    def _extreme_return(self, model: Model, discount: float) -> float:
        free = np.zeros(self.n_states, bool)
        values = best_values(model, np.empty((self.n_states, self.n_actions)), free, self.horizon, discount)
        return float(self.start @ values)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that determines the data a policy collects here."""
        digest = hashlib.blake2b(f"{self.n_actions} {self.horizon}".encode(), digest_size=16)
        expert = np.zeros(0, bool) if self.published_expert is None else self.published_expert
        arrays = (self.ids, self.state, self.action, self.probability, self.next_state, self.reward, self.start, expert)
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def from_outcomes(
    name: str,
    *,
    state: ArrayLike,
    action: ArrayLike,
    probability: ArrayLike,
    next_state: ArrayLike,
    reward: ArrayLike,
    terminated: ArrayLike,
    start: ArrayLike,
    horizon: int | None = None,
    n_actions: int | None = None,
    layout: Layout | None = None,
    expert: Mapping[int, Sequence[int]] | None = None,
) -> TabularWorld:
    """Build a world from flat outcome arrays over the world's own state ids, and check it.

    Args:
        name: the world's name.
        state: [m] non-negative integer id of the state acted in.
        action: [m] action, 0..n_actions-1.
        probability: [m] probability of the outcome; each (state, action) sums to 1.
        next_state: [m] id of the state entered; ignored where the episode terminates.
        reward: [m] reward.
        terminated: [m] whether the outcome terminates the episode.
        start: probability of starting at id 0, 1, ...
        horizon: number of steps after which an episode is truncated; defaults to the length of the longest path, and
            is required if paths can be infinite.
        n_actions: number of actions; defaults to the largest entry of ``action`` plus 1.
        layout: how to draw the reachable states, in the order of their ids; defaults to a square block of cells.
        expert: the expert's actions by state id; defaults to value iteration.

    Returns:
        The world over the states that can be reached from the start.

    Raises:
        WorldError: the arrays do not describe a valid world.
    """
    check_instance("name", name, str)
    if layout is not None:
        check_instance("layout", layout, Layout)
    where = f"world {shown(name)}:"
    s, a, following = (
        as_ints(f"{where} {column}", values, WorldError)
        for column, values in (("state", state), ("action", action), ("next_state", next_state))
    )
    p, r, d0 = (
        as_reals(f"{where} {column}", values, WorldError)
        for column, values in (("probability", probability), ("reward", reward), ("start", start))
    )
    terminal = truth_values(f"{where} terminated", terminated, WorldError)
    if not (s.ndim == 1 and s.shape == a.shape == p.shape == following.shape == r.shape == terminal.shape):
        raise WorldError(f"world {name!r}: the outcome arrays must be one-dimensional and of the same length")
    if len(s) == 0:
        raise WorldError(f"world {name!r} has no outcomes")
    following = np.where(terminal, 0, following)
    actions = int(a.max()) + 1 if n_actions is None else check_int("n_actions", n_actions, 1, MANY, WorldError)
    if s.min() < 0 or a.min() < 0 or a.max() >= actions:
        raise WorldError(f"world {name!r}: state ids must not be negative, actions must lie in 0..{actions - 1}")
    if a.max() >= MANY:
        raise WorldError(f"world {name!r}: actions must be less than {MANY}")
    if not (np.isfinite(p).all() and (np.abs(r) <= LARGEST_REWARD).all()) or (p < 0).any():
        limits = f"{-LARGEST_REWARD:g} to {LARGEST_REWARD:g}, or sums of them could overflow"
        raise WorldError(f"world {name!r}: probabilities must be 0 or more, rewards numbers from {limits}")
    _check_start(name, d0)
    rows = np.flatnonzero(p > 0)
    ids = _reachable(name, s[rows], following[rows], terminal[rows], d0)
    rows = rows[np.isin(s[rows], ids)]
    if len(ids) * actions > len(rows):
        _raise_missing_action(name, ids, actions, s[rows], a[rows])
    pair = np.searchsorted(ids, s[rows]) * actions + a[rows]
    rows, pair = rows[np.argsort(pair, kind="stable")], np.sort(pair)
    total = np.bincount(pair, p[rows], len(ids) * actions)
    off = np.flatnonzero(np.abs(total - 1) > PROBABILITY_TOLERANCE)
    if len(off):
        where = f"state {ids[off[0] // actions]}, action {off[0] % actions}"
        raise WorldError(f"world {name!r}: probabilities at {where} sum to {total[off[0]]:.6g}, not 1")
    if layout is not None and len(layout.positions) != len(ids):
        raise WorldError(f"world {name!r}: the layout places {len(layout.positions)} states, the world has {len(ids)}")
    start_of = np.zeros(len(ids))
    start_of[np.searchsorted(ids, np.flatnonzero(d0))] = d0[d0 > 0] / d0.sum()
    world = TabularWorld(
        name=str(name),
        ids=ids,
        n_actions=actions,
        state=np.searchsorted(ids, s[rows]),
        action=a[rows],
        probability=p[rows],
        next_state=np.where(terminal[rows], -1, np.searchsorted(ids, following[rows])),
        reward=r[rows],
        start=start_of,
        horizon=1,  # until the longest path is known
        layout=square_layout(len(ids)) if layout is None else layout,
        published_expert=_expert_table(name, expert, ids, actions),
    )
    return replace(world, horizon=_horizon(world, horizon))


def from_toy_text(
    env: Any,
    *,
    name: str | None = None,
    horizon: int | None = None,
    layout: Layout | None = None,
    expert: Mapping[int, Sequence[int]] | None = None,
) -> TabularWorld:
    """Build a world from a Gymnasium environment with a toy-text table ``P``.

    Args:
        env: the environment; wrappers are removed.
        name: the world's name; defaults to the id of the environment.
        horizon: number of steps after which an episode is truncated; defaults to the time limit of the environment.
        layout: how to draw the reachable states; see `from_outcomes`.
        expert: the expert's actions by id; see `from_outcomes`.

    Raises:
        WorldError: the environment has no such table.
    """
    table = getattr(getattr(env, "unwrapped", None), "P", None)
    if not isinstance(table, dict) or not table:
        raise WorldError(
            f"{shown(env)} has no toy-text table `P`: {{state: {{action: [(probability, next, reward, terminated)]}}}}"
        )
    try:
        rows = [
            (s, a, *outcome) for s, by_action in table.items() for a, found in by_action.items() for outcome in found
        ]
        state, action, probability, next_state, reward, terminated = zip(*rows, strict=True)
    except (AttributeError, TypeError, ValueError) as error:
        raise WorldError(
            f"the table `P` of {shown(env)} must be {{state: {{action: [(probability, next, reward, terminated)]}}}} "
            f"({error})"
        ) from None
    start = getattr(env.unwrapped, "initial_state_distrib", None)
    if start is None:
        raise WorldError(f"{shown(env)} has no `initial_state_distrib`")
    spec = env.spec
    if name is None:
        name = spec.id if spec else type(env.unwrapped).__name__
    return from_outcomes(
        name,
        state=state,
        action=action,
        probability=probability,
        next_state=next_state,
        reward=reward,
        terminated=terminated,
        start=start,
        horizon=horizon if horizon is not None else (spec.max_episode_steps if spec else None),
        n_actions=int(env.action_space.n),
        layout=layout,
        expert=expert,
    )


def truth_values(name: str, values: ArrayLike, error: type[SelectEnvError]) -> BoolArray:
    """Return ``values`` as booleans, from booleans or from zeros and ones.

    Raises:
        SelectEnvError: the values are something else; the type is ``error``.
    """
    found = as_array(name, values, error)
    if found.size and found.dtype != np.bool_ and (found.dtype.kind not in "iuf" or not np.isin(found, (0, 1)).all()):
        raise error(f"{name} must be true or false, not {found.dtype}")
    return found.astype(np.bool_)


def _check_start(name: str, start: FloatArray) -> None:
    """Raise unless ``start`` is a distribution."""
    if start.ndim != 1 or not ((start >= 0) & (start < 2)).all() or start.sum() <= 0:
        raise WorldError(
            f"world {name!r}: the start distribution must have a positive entry, no negative one and none above 1"
        )
    if abs(start.sum() - 1) > PROBABILITY_TOLERANCE:
        raise WorldError(f"world {name!r}: the start distribution sums to {start.sum():.6g}, not 1")


def _reachable(name: str, state: IntArray, next_state: IntArray, terminal: BoolArray, start: FloatArray) -> IntArray:
    """Return the sorted ids of the reachable non-terminal states."""
    acting = np.unique(state)
    missing = np.setdiff1d(next_state[~terminal], acting)
    if len(missing):
        raise WorldError(
            f"world {name!r} enters state {missing[0]}, which has no actions; "
            "if episodes terminate there, set `terminated`"
        )
    size, first = len(acting), np.flatnonzero(start)
    idle = np.setdiff1d(first, acting)
    if len(idle):
        raise WorldError(f"world {name!r} starts in state {idle[0]}, which has no actions")
    inside, entered, begun = (np.searchsorted(acting, ids) for ids in (state[~terminal], next_state[~terminal], first))
    source = np.concatenate([inside, np.full(len(first), size)])  # an extra node leads to all start states
    target = np.concatenate([entered, begun])
    graph = csr_array((np.ones(len(source), bool), (source, target)), shape=(size + 1, size + 1))
    found = breadth_first_order(graph, size, return_predecessors=False)
    reachable: IntArray = acting[np.sort(found[1:])]
    return reachable


def _raise_missing_action(name: str, ids: IntArray, actions: int, state: IntArray, action: IntArray) -> None:
    """Raise an error that names the first action without outcomes."""
    for state_id in ids:
        taken = np.unique(action[state == state_id])
        if len(taken) < actions:
            missing = int(np.append(np.flatnonzero(taken != np.arange(len(taken))), len(taken))[0])
            raise WorldError(
                f"world {name!r}: probabilities at state {state_id}, action {missing} sum to 0, not 1: every state "
                f"needs outcomes of all {actions} actions"
            )


def _horizon(world: TabularWorld, horizon: int | None) -> int:
    """Return the horizon; it defaults to the length of the longest path."""
    if horizon is not None:
        return check_int(f"world {world.name!r}: the horizon", horizon, 1, MANY, WorldError)
    if not world.model.acyclic:
        raise WorldError(f"world {world.name!r} has cycles: it needs a horizon")
    return longest_path(world.model)


def longest_path(model: Model) -> int:
    """Return the number of steps of the longest path of a model without cycles."""
    steps = np.ones(model.n_states, np.int64)
    for s in model.order:
        first, last = model.first_choice[s], model.first_choice[s + 1]
        successors = model.next_state[model.first_outcome[first] : model.first_outcome[last]]
        steps[s] = 1 + (steps[successors].max() if len(successors) else 0)
    return int(steps.max())


def _expert_table(
    name: str, expert: Mapping[int, Sequence[int]] | None, ids: IntArray, n_actions: int
) -> BoolArray | None:
    """Return the expert's actions as a table [n, actions]; None without an expert."""
    if expert is None:
        return None
    check_instance("expert", expert, dict)
    for s, choice in expert.items():
        if not is_int(s):
            raise WorldError(f"world {name!r}: the expert's actions are given by state id, an int, not by {shown(s)}")
        if not isinstance(choice, Sequence) or not choice or not all(is_int(a) and 0 <= a < n_actions for a in choice):
            raise WorldError(
                f"world {name!r}: the expert's actions at state {shown(s)} must be a non-empty list of "
                f"0..{n_actions - 1}"
            )
    missing = [int(s) for s in ids if s not in expert]
    if missing:
        raise WorldError(f"world {name!r}: the expert has no action at state {missing[0]}")
    unknown = sorted(set(expert) - set(ids.tolist()))
    if unknown:
        raise UnknownStateError(
            f"world {name!r}: the expert acts at state {shown(unknown[0])}, which does not exist in the world"
        )
    table = np.zeros((len(ids), n_actions), bool)
    for row, s in enumerate(ids):
        table[row, list(expert[int(s)])] = True
    return table
