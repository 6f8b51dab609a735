"""Q-learning over a fixed set of transitions, as published: reshuffled passes with a constant step size."""

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.rng import mix, next_below
from selectenv.kernels.threads import SLICE_COST, check_stopped
from selectenv.typing import BoolArray, FloatArray, Int32Array, IntArray, UintArray

SAMPLE_COST = 16
"""Cost of learning from one sample, in the operations of `SLICE_COST`."""


@kernel
def q_learning(
    samples: Int32Array,
    state: Int32Array,
    action: Int32Array,
    next_state: Int32Array,
    reward: FloatArray,
    label: BoolArray,
    labelled_only: bool,
    excluded: BoolArray,
    gamma: float,
    step_size: float,
    passes: int,
    stop: float,
    max_samples: int,
    seed: UintArray,
    progress: IntArray,
    errors: FloatArray,
    q: FloatArray,
) -> bool:
    """Learn ``q`` [n, actions] in place from at most ``max_samples`` samples; return whether learning is finished.

    Q(s, a) <- Q(s, a) + step_size (r + gamma max_a' Q(s', a') - Q(s, a)), sample by sample. If ``labelled_only``, only
    samples out of labelled states are learned from, and an unlabelled next state is worth 0.

    Args:
        samples: [samples] the number of each sample's unique transition; shuffled in place.
        state: [unique] state of each unique transition.
        action: [unique] its action.
        next_state: [unique] its next state, -1 for none.
        reward: [unique] its reward, imputed if the state is not labelled.
        label: [n] which states are labelled.
        labelled_only: see above.
        excluded: [n, actions] actions that take no part in the maximum.
        gamma: discount.
        step_size: step size.
        passes: largest number of passes.
        stop: stop when the mean absolute TD errors of two passes differ by less than this.
        max_samples: samples after which to return, even in the middle of a pass.
        seed: one word of random state.
        progress: [3] passes made, samples met in the current pass and samples learned from in it; 0 at the start.
        errors: [2] mean absolute TD error of the last pass, and the sum of those of the current one; inf and 0 at the
            start.
        q: 0 at the start.
    """
    n_actions = q.shape[1]
    made, left, used = progress[0], len(samples) - progress[1], progress[2]
    before, error = errors[0], errors[1]
    finished = bool(made >= passes)
    while not finished and max_samples > 0:
        last = max(0, left - max_samples)
        max_samples -= left - last
        for i in range(left - 1, last - 1, -1):
            j = next_below(seed, i + 1)
            k = samples[j]
            samples[j] = samples[i]
            samples[i] = k
            s = state[k]
            if labelled_only and not label[s]:
                continue
            target = reward[k]
            following = next_state[k]
            if following >= 0 and (label[following] or not labelled_only):
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
        left = last
        if left == 0:
            error /= max(used, 1)
            made += 1
            finished = bool(abs(before - error) < stop or made == passes)
            before, error, left, used = error, 0.0, len(samples), 0
    progress[0], progress[1], progress[2] = made, len(samples) - left, used
    errors[0], errors[1] = before, error
    return finished


@kernel
def label_set_seed(base: np.uint64, label: BoolArray) -> np.uint64:
    """Mix a label set into a seed, so that learning from a set is a function of the set."""
    word = base
    for s in range(len(label)):
        if label[s]:
            word = mix(word ^ np.uint64(s + 1))
    return word


@kernel
def greedy_over_ties(
    label: BoolArray,
    labelled_only: bool,
    excluded: BoolArray,
    behaviour: FloatArray,
    q: FloatArray,
    policy: FloatArray,
) -> None:
    """Write the greedy policy [n, actions] of action values [n, actions]; exact ties are split uniformly."""
    n, n_actions = q.shape
    for s in range(n):
        best = -np.inf
        ties = 0
        for a in range(n_actions):
            if excluded[s, a]:
                continue
            if q[s, a] > best:
                best = q[s, a]
                ties = 0
            if q[s, a] == best:
                ties += 1
        for a in range(n_actions):
            if labelled_only and not label[s]:
                policy[s, a] = behaviour[s, a]
            elif ties == 0:
                policy[s, a] = 1.0 / n_actions
            elif excluded[s, a] or q[s, a] < best:
                policy[s, a] = 0.0
            else:
                policy[s, a] = 1.0 / ties


@kernel
def learn_next_sets(
    masks: BoolArray,
    samples: Int32Array,
    state: Int32Array,
    action: Int32Array,
    next_state: Int32Array,
    reward: FloatArray,
    impute: float,
    labelled_only: bool,
    excluded: BoolArray,
    gamma: float,
    step_size: float,
    passes: int,
    stop: float,
    base_seed: np.uint64,
    behaviour: FloatArray,
    q: FloatArray,
    policies: FloatArray,
    max_samples: int,
    first: int,
    progress: IntArray,
    errors: FloatArray,
    seed: UintArray,
    shuffled: Int32Array,
    imputed: FloatArray,
) -> int:
    """Do the work of `learn_sets` from set ``first`` on until about ``max_samples`` samples were met.

    ``progress`` and ``errors`` (see `q_learning`), ``seed``, ``shuffled`` and ``imputed`` carry the state from call to
    call.

    Returns:
        The number of the set to resume with.
    """
    for i in range(first, len(masks)):
        label = masks[i]
        if progress[0] == 0 and progress[1] == 0:
            for k in range(len(reward)):
                imputed[k] = reward[k] if label[state[k]] else impute
            for k in range(len(samples)):
                shuffled[k] = samples[k]
            seed[0] = label_set_seed(base_seed, label)
            errors[0], errors[1] = np.inf, 0.0
            q[i] = 0.0
        if not q_learning(
            shuffled,
            state,
            action,
            next_state,
            imputed,
            label,
            labelled_only,
            excluded,
            gamma,
            step_size,
            passes,
            stop,
            max_samples,
            seed,
            progress,
            errors,
            q[i],
        ):
            return i
        max_samples -= progress[0] * len(samples)
        progress[:] = 0
        greedy_over_ties(label, labelled_only, excluded, behaviour, q[i], policies[i])
        if max_samples <= 0:
            return i + 1
    return len(masks)


def learn_sets(
    masks: BoolArray,
    samples: Int32Array,
    state: Int32Array,
    action: Int32Array,
    next_state: Int32Array,
    reward: FloatArray,
    impute: float,
    labelled_only: bool,
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
    """Run `q_learning` for every row of ``masks`` and write Q and the greedy policies; exact ties are split uniformly.

    Args:
        masks: [sets, n] which states are labelled.
        samples: see `q_learning`, as for all arguments not described here; not changed.
        state: see `q_learning`.
        action: see `q_learning`.
        next_state: see `q_learning`.
        reward: [unique] true rewards.
        impute: reward of transitions out of unlabelled states.
        labelled_only: see `q_learning`.
        excluded: see `q_learning`.
        gamma: see `q_learning`.
        step_size: see `q_learning`.
        passes: see `q_learning`.
        stop: see `q_learning`.
        base_seed: the learner's seed, mixed with each label set.
        behaviour: [n, actions] action frequencies, followed at unlabelled states if ``labelled_only``.
        q: [sets, n, actions] receives the action values.
        policies: [sets, n, actions] receives the action probabilities.
    """
    progress, errors, seed = np.zeros(3, np.int64), np.empty(2), np.empty(1, np.uint64)
    shuffled, imputed = np.empty_like(samples), np.empty_like(reward)
    done = 0
    while done < len(masks):
        check_stopped()
        done = learn_next_sets(
            masks,
            samples,
            state,
            action,
            next_state,
            reward,
            impute,
            labelled_only,
            excluded,
            gamma,
            step_size,
            passes,
            stop,
            base_seed,
            behaviour,
            q,
            policies,
            SLICE_COST // SAMPLE_COST,
            done,
            progress,
            errors,
            seed,
            shuffled,
            imputed,
        )
