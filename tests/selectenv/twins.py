"""Plain twins of the compiled kernels, and random worlds to try both on."""

import numpy as np
from hypothesis import strategies as st

from selectenv.domains.tabular import from_outcomes

MASK64 = (1 << 64) - 1


def random_world(seed: int, cyclic: bool = True):
    """A small random world: sparse outcomes, some of which end, integer rewards (so that ties happen)."""
    rng = np.random.default_rng(seed)
    n, actions = int(rng.integers(2, 8)), int(rng.integers(1, 4))
    rows = []
    for s in range(n):
        for a in range(actions):
            count = int(rng.integers(1, 4))
            for p in rng.dirichlet(np.ones(count)):
                following = int(rng.integers(0, n) if cyclic else rng.integers(s, n))
                ends = bool(rng.random() < 0.3) or (not cyclic and following == s)
                rows.append((s, a, p, following, float(rng.integers(-2, 3)), ends))
    state, action, probability, next_state, reward, terminated = zip(*rows, strict=True)
    start = np.zeros(n)
    start[0] = 0.25
    start[rng.integers(0, n)] += 0.75
    return from_outcomes(
        f"random-{seed}",
        state=state,
        action=action,
        probability=probability,
        next_state=next_state,
        reward=reward,
        terminated=terminated,
        start=start,
        horizon=int(rng.integers(1, 12)),
        n_actions=actions,
    )


worlds = st.builds(random_world, st.integers(0, 10_000), st.booleans())


def dense(n, n_actions, state, action, next_state, weight, reward):
    """Transition tensor [n, actions, n] and expected rewards [n, actions] of weighted transitions."""
    p, r, total = np.zeros((n, n_actions, n)), np.zeros((n, n_actions)), np.zeros((n, n_actions))
    for s, a, following, w, x in zip(state, action, next_state, weight, reward, strict=True):
        total[s, a] += w
        r[s, a] += w * x
        if following >= 0:
            p[s, a, following] += w
    safe = np.where(total > 0, total, 1)
    return p / safe[:, :, None], r / safe, total > 0


def dense_world(world):
    return dense(
        world.n_states, world.n_actions, world.state, world.action, world.next_state, world.probability, world.reward
    )


def dense_data(dataset):
    return dense(
        dataset.n_states,
        dataset.n_actions,
        dataset.state,
        dataset.action,
        dataset.next_state,
        np.ones(len(dataset)),
        dataset.hidden_reward,
    )


def learn(p, r, seen, label, gamma, impute=0.0, adapted=False, exclude=False, behaviour=None, sweeps=3000):
    """Value iteration, many sweeps, then the greedy policy with ties shared: (q, values, policy)."""
    n = len(r)
    reward = np.where(label[:, None], r, impute)
    values = np.zeros(n)
    for _ in range(sweeps):
        q = np.where(seen, reward + gamma * p @ values, -np.inf if exclude else 0.0)
        values = np.where(np.isfinite(q.max(axis=1)), q.max(axis=1), 0.0)
        if adapted:
            values = values * label
    if adapted:
        q = np.where(label[:, None] | ~np.isfinite(q), q, 0.0)
    best = q >= q.max(axis=1, keepdims=True) - 1e-8
    best[~np.isfinite(q).any(axis=1)] = True
    policy = best / best.sum(axis=1, keepdims=True)
    if adapted:
        policy = np.where(label[:, None], policy, behaviour)
    return q, values, policy


def expected_return(p, r, policy, start, horizon, discount=1.0):
    """Carry the state distribution forwards and add up expected rewards."""
    total, now, factor = 0.0, start.copy(), 1.0
    for _ in range(horizon):
        total += factor * (now[:, None] * policy * r).sum()
        now = np.einsum("s,sa,sat->t", now, policy, p)
        factor *= discount
    return total


class SplitMix:
    """The random stream of the kernels in plain integers."""

    def __init__(self, seed):
        self.state = int(seed)

    def word(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK64
        return self.mix(self.state)

    @staticmethod
    def mix(word):
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK64
        return word ^ (word >> 31)

    def unit(self):
        return (self.word() >> 11) / 2**53

    def below(self, bound):
        return ((self.word() >> 32) * bound) >> 32

    def draw(self, probabilities):
        cumulative = np.cumsum(probabilities)
        cumulative[-1] = 1.0
        return int(np.argmax(cumulative > self.unit()))


def in_components(model):
    """The model as a large one: its states in components, those that components lead into first; by plain search."""
    n = model.n_states
    reach = np.eye(n, dtype=bool)
    state = np.repeat(np.arange(n), np.diff(model.first_choice))
    reach[np.repeat(state, np.diff(model.first_outcome)), model.next_state] = True
    for k in range(n):
        reach |= reach[:, [k]] & reach[[k]]
    together = reach & reach.T
    members = {tuple(np.flatnonzero(row)) for row in together}
    ordered = sorted(members, key=lambda part: (reach[part[0]].sum(), part))  # what is reached reaches no more
    order = np.array([s for part in ordered for s in part], np.int32)
    return model._replace(order=order, component=np.cumsum([0, *map(len, ordered)]).astype(np.int32))
