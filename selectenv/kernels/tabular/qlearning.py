"""Q-learning over a fixed set of transitions, the published way: reshuffled passes with a constant step size."""

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.rng import mix, next_below
from selectenv.typing import BoolArray, FloatArray, Int32Array, UintArray


@kernel
def q_learning(
    kind: Int32Array,
    state: Int32Array,
    action: Int32Array,
    next_state: Int32Array,
    reward: FloatArray,
    label: BoolArray,
    truncated: bool,
    excluded: BoolArray,
    gamma: float,
    step_size: float,
    passes: int,
    stop: float,
    seed: UintArray,
    q: FloatArray,
) -> int:
    """Learn ``q`` [n, actions] in place; return the passes made.

    Q(s, a) <- Q(s, a) + step_size (r + gamma max_a' Q(s', a') - Q(s, a)), sample by sample. Truncated: only samples out
    of labelled states are learned from, and an unlabelled next state is worth 0.

    Args:
        kind: [samples] which kind of transition each sample is; shuffled in place.
        state: [kinds] state of a kind.
        action: [kinds] action of a kind.
        next_state: [kinds] next state of a kind, -1 for none.
        reward: [kinds] reward, imputed where the state is not labelled.
        label: [n] which states are labelled.
        truncated: see above.
        excluded: [n, actions] actions that take no part in the maximum.
        gamma: discount.
        step_size: step size.
        passes: at most so many passes.
        stop: stop when the mean absolute TD error of two passes differs by less.
        seed: one word of random state.
        q: [n, actions] zero at the start.
    """
    n_actions = q.shape[1]
    before = np.inf
    for i_pass in range(passes):
        error = 0.0
        used = 0
        for i in range(len(kind) - 1, -1, -1):
            j = next_below(seed, i + 1)
            k = kind[j]
            kind[j] = kind[i]
            kind[i] = k
            s = state[k]
            if truncated and not label[s]:
                continue
            target = reward[k]
            following = next_state[k]
            if following >= 0 and (label[following] or not truncated):
                best = -np.inf
                for a in range(n_actions):
                    if q[following, a] > best and not excluded[following, a]:
                        best = q[following, a]
                if best > -np.inf:
                    target += gamma * best
            delta = target - q[s, action[k]]
            q[s, action[k]] += step_size * delta
            error += abs(delta)
            used += 1
        error /= max(used, 1)
        if abs(before - error) < stop:
            return i_pass + 1
        before = error
    return passes


@kernel
def label_set_seed(base: np.uint64, label: BoolArray) -> np.uint64:
    """Mix a label set into a seed, so that learning from a set is a function of the set."""
    word = base
    for s in range(len(label)):
        if label[s]:
            word = mix(word ^ np.uint64(s + 1))
    return word


@kernel
def learn_sets(
    masks: BoolArray,
    kind: Int32Array,
    state: Int32Array,
    action: Int32Array,
    next_state: Int32Array,
    reward: FloatArray,
    impute: float,
    truncated: bool,
    excluded: BoolArray,
    gamma: float,
    step_size: float,
    passes: int,
    stop: float,
    base_seed: np.uint64,
    behaviour: FloatArray,
    q: FloatArray,
    policies: FloatArray,
) -> None:
    """Run `q_learning` for every row of ``masks`` and write Q and the greedy policies, exact ties shared.

    Args:
        masks: [sets, n] which states are labelled.
        kind: see `q_learning`, as are the arguments not named here; left as it was.
        state: see `q_learning`.
        action: see `q_learning`.
        next_state: see `q_learning`.
        reward: [kinds] true rewards.
        impute: reward of transitions out of unlabelled states.
        truncated: see `q_learning`.
        excluded: see `q_learning`.
        gamma: see `q_learning`.
        step_size: see `q_learning`.
        passes: see `q_learning`.
        stop: see `q_learning`.
        base_seed: the learner's seed, mixed with each label set.
        behaviour: [n, actions] action frequencies, followed outside the labels when truncated.
        q: [sets, n, actions] receives the action values.
        policies: [sets, n, actions] receives the action probabilities.
    """
    n, n_actions = behaviour.shape
    seed = np.empty(1, np.uint64)
    imputed = np.empty_like(reward)
    for i in range(len(masks)):
        label = masks[i]
        for k in range(len(reward)):
            imputed[k] = reward[k] if label[state[k]] else impute
        seed[0] = label_set_seed(base_seed, label)
        q[i] = 0.0
        samples = kind.copy()
        q_learning(
            samples, state, action, next_state, imputed, label, truncated, excluded,
            gamma, step_size, passes, stop, seed, q[i],
        )  # fmt: skip
        for s in range(n):
            best = -np.inf
            ties = 0
            for a in range(n_actions):
                if excluded[s, a]:
                    continue
                if q[i, s, a] > best:
                    best = q[i, s, a]
                    ties = 0
                if q[i, s, a] == best:
                    ties += 1
            for a in range(n_actions):
                if truncated and not label[s]:
                    policies[i, s, a] = behaviour[s, a]
                elif ties == 0:
                    policies[i, s, a] = 1.0 / n_actions
                elif excluded[s, a] or q[i, s, a] < best:
                    policies[i, s, a] = 0.0
                else:
                    policies[i, s, a] = 1.0 / ties
