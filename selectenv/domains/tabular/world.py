"""Tabular worlds: outcomes, a start distribution, a horizon and a layout, stored as arrays."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from selectenv.checks import check_int, is_int
from selectenv.domains.layout import Layout, square_layout
from selectenv.errors import SelectEnvError, UnknownStateError, WorldError
from selectenv.kernels.tabular.model import LARGEST_REWARD, Chain, Model, build_chain, build_model
from selectenv.kernels.tabular.returns import best_values
from selectenv.kernels.tabular.sample import Walk
from selectenv.typing import BoolArray, FloatArray, IntArray

PROBABILITY_TOLERANCE = 1e-9


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
        return self._extreme_return(self.model, discount)

    def worst_return(self, discount: float = 1.0) -> float:
        """Return the smallest expected return of any policy, time-dependent ones included, within the horizon."""
        return -self._extreme_return(self.model._replace(reward=-self.model.reward), discount)

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
    expert: dict[int, Sequence[int]] | None = None,
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
    try:
        s, a, following = (np.asarray(x).astype(np.int64, casting="same_kind") for x in (state, action, next_state))
        p, r, d0 = (np.asarray(x, np.float64) for x in (probability, reward, start))
        terminal = truth_values("terminated", terminated, WorldError)
    except (TypeError, ValueError) as error:
        raise WorldError(f"world {name!r}: states and actions must be integers, the rest numbers ({error})") from None
    if not (s.ndim == 1 and s.shape == a.shape == p.shape == following.shape == r.shape == terminal.shape):
        raise WorldError(f"world {name!r}: the outcome arrays must be one-dimensional and of the same length")
    if len(s) == 0:
        raise WorldError(f"world {name!r} has no outcomes")
    following = np.where(terminal, 0, following)
    actions = int(a.max()) + 1 if n_actions is None else check_int("n_actions", n_actions, 1, error=WorldError)
    if s.min() < 0 or a.min() < 0 or a.max() >= actions:
        raise WorldError(f"world {name!r}: state ids must not be negative, actions must lie in 0..{actions - 1}")
    if not (np.isfinite(p).all() and (np.abs(r) <= LARGEST_REWARD).all()) or (p < 0).any():
        limits = f"{-LARGEST_REWARD:g} to {LARGEST_REWARD:g}, or sums of them could overflow"
        raise WorldError(f"world {name!r}: probabilities must be 0 or more, rewards numbers from {limits}")
    _check_start(name, d0, s)
    rows = np.flatnonzero(p > 0)
    ids = _reachable(name, s[rows], following[rows], terminal[rows], d0)
    rows = rows[np.isin(s[rows], ids)]
    number = np.full(int(max(ids.max(), following.max())) + 1, -1)
    number[ids] = np.arange(len(ids))
    pair = number[s[rows]] * actions + a[rows]
    rows, pair = rows[np.argsort(pair, kind="stable")], np.sort(pair)
    total = np.bincount(pair, p[rows], len(ids) * actions)
    off = np.flatnonzero(np.abs(total - 1) > PROBABILITY_TOLERANCE)
    if len(off):
        where = f"state {ids[off[0] // actions]}, action {off[0] % actions}"
        raise WorldError(f"world {name!r}: probabilities at {where} sum to {total[off[0]]:.6g}, not 1")
    if layout is not None and len(layout.positions) != len(ids):
        raise WorldError(f"world {name!r}: the layout places {len(layout.positions)} states, the world has {len(ids)}")
    start_of = np.zeros(len(ids))
    start_of[number[np.flatnonzero(d0)]] = d0[d0 > 0] / d0.sum()
    world = TabularWorld(
        name,
        ids,
        actions,
        number[s[rows]],
        a[rows],
        p[rows],
        np.where(terminal, -1, number[following])[rows],
        r[rows],
        start_of,
        horizon=0,
        layout=layout or square_layout(len(ids)),
        published_expert=_expert_table(name, expert, ids, actions),
    )
    return replace(world, horizon=_horizon(world, horizon))


def from_toy_text(env: Any, *, name: str | None = None, horizon: int | None = None, **options: Any) -> TabularWorld:
    """Build a world from a Gymnasium environment with a toy-text table ``P``.

    Args:
        env: the environment; wrappers are removed.
        name: the world's name; defaults to the id of the environment.
        horizon: number of steps after which an episode is truncated; defaults to the time limit of the environment.
        **options: ``layout`` and ``expert`` as for `from_outcomes`.

    Raises:
        WorldError: the environment has no such table.
    """
    table = getattr(getattr(env, "unwrapped", None), "P", None)
    if not isinstance(table, dict) or not table:
        raise WorldError(
            f"{env} has no toy-text table `P`: {{state: {{action: [(probability, next, reward, terminated)]}}}}"
        )
    rows = [(s, a, *outcome) for s, by_action in table.items() for a, found in by_action.items() for outcome in found]
    state, action, probability, next_state, reward, terminated = zip(*rows, strict=True)
    start = getattr(env.unwrapped, "initial_state_distrib", None)
    if start is None:
        raise WorldError(f"{env} has no `initial_state_distrib`")
    spec = env.spec
    return from_outcomes(
        name or (spec.id if spec else type(env.unwrapped).__name__),
        state=state,
        action=action,
        probability=probability,
        next_state=next_state,
        reward=reward,
        terminated=terminated,
        start=start,
        horizon=horizon if horizon is not None else (spec.max_episode_steps if spec else None),
        n_actions=int(env.action_space.n),
        **options,
    )


def truth_values(name: str, values: ArrayLike, error: type[SelectEnvError]) -> BoolArray:
    """Return ``values`` as booleans, from booleans or from zeros and ones.

    Raises:
        SelectEnvError: the values are something else; the type is ``error``.
    """
    found = np.asarray(values)
    if found.size and found.dtype != np.bool_ and (found.dtype.kind not in "iuf" or not np.isin(found, (0, 1)).all()):
        raise error(f"{name} must be true or false, not {found.dtype}")
    return found.astype(np.bool_)


def _check_start(name: str, start: FloatArray, state: IntArray) -> None:
    """Raise unless ``start`` is a distribution over states with actions."""
    if start.ndim != 1 or not np.isfinite(start).all() or (start < 0).any() or start.sum() <= 0:
        raise WorldError(f"world {name!r}: the start distribution must have a positive entry and no negative one")
    if abs(start.sum() - 1) > PROBABILITY_TOLERANCE:
        raise WorldError(f"world {name!r}: the start distribution sums to {start.sum():.6g}, not 1")
    idle = np.setdiff1d(np.flatnonzero(start), state)
    if len(idle):
        raise WorldError(f"world {name!r} starts in state {idle[0]}, which has no actions")


def _reachable(name: str, state: IntArray, next_state: IntArray, terminal: BoolArray, start: FloatArray) -> IntArray:
    """Return the sorted ids of the reachable non-terminal states."""
    acting = np.unique(state)
    missing = np.setdiff1d(next_state[~terminal], acting)
    if len(missing):
        raise WorldError(
            f"world {name!r} enters state {missing[0]}, which has no actions; "
            "if episodes terminate there, set `terminated`"
        )
    size, first = int(acting.max()) + 1, np.flatnonzero(start)
    source = np.concatenate([state[~terminal], np.full(len(first), size)])  # an extra node leads to all start states
    target = np.concatenate([next_state[~terminal], first])
    graph = csr_array((np.ones(len(source), bool), (source, target)), shape=(size + 1, size + 1))
    found = breadth_first_order(graph, size, return_predecessors=False)
    return np.sort(found[1:]).astype(np.int64)


def _horizon(world: TabularWorld, horizon: int | None) -> int:
    """Return the horizon; it defaults to the length of the longest path."""
    if horizon is not None:
        return check_int(f"world {world.name!r}: the horizon", horizon, 1, error=WorldError)
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
    name: str, expert: dict[int, Sequence[int]] | None, ids: IntArray, n_actions: int
) -> BoolArray | None:
    """Return the expert's actions as a table [n, actions]; None without an expert."""
    if expert is None:
        return None
    for s, choice in expert.items():
        if not isinstance(choice, Sequence) or not choice or not all(is_int(a) and 0 <= a < n_actions for a in choice):
            raise WorldError(
                f"world {name!r}: the expert's actions at state {s} must be a non-empty list of 0..{n_actions - 1}"
            )
    missing = [int(s) for s in ids if s not in expert]
    if missing:
        raise WorldError(f"world {name!r}: the expert has no action at state {missing[0]}")
    unknown = sorted(set(expert) - set(ids.tolist()))
    if unknown:
        raise UnknownStateError(
            f"world {name!r}: the expert acts at state {unknown[0]}, which does not exist in the world"
        )
    table = np.zeros((len(ids), n_actions), bool)
    for row, s in enumerate(ids):
        table[row, list(expert[int(s)])] = True
    return table
