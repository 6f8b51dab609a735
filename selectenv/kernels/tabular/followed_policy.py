"""What a policy is worth under the rewards known so far, and where another policy would lead that it does not."""

import numpy as np

from selectenv.kernels.compiled import kernel
from selectenv.kernels.tabular.model import Model
from selectenv.typing import BoolArray, FloatArray

SAME = 1e-8
"""Values that differ by at most this share of the largest one are tied."""


@kernel
def policy_values(model: Model, reward: FloatArray, policy: FloatArray, gamma: float, sweeps: int) -> FloatArray:
    """Return the values [n] of a policy after a number of sweeps in the order of the model.

    Args:
        model: the model; its rewards are not used.
        reward: [choices] expected rewards.
        policy: [n, actions] probabilities of actions.
        gamma: discount.
        sweeps: most sweeps; fewer are made where values no longer change.
    """
    n = len(policy)
    values = np.zeros(n)
    for _ in range(1 if model.acyclic else sweeps):
        change = 0.0
        for place in range(n):
            s = model.order[place]
            total = 0.0
            for choice in range(model.first_choice[s], model.first_choice[s + 1]):
                share = policy[s, model.action[choice]]
                if share > 0.0:
                    q = reward[choice]
                    for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                        q += gamma * model.probability[k] * values[model.next_state[k]]
                    total += share * q
            change = max(change, abs(total - values[s]))
            values[s] = total
        if change <= SAME:
            break
    return values


@kernel
def label_effects(
    model: Model,
    reward: FloatArray,
    behaviour: FloatArray,
    favoured: FloatArray,
    favoured_visits: FloatArray,
    policy: FloatArray,
    learned: FloatArray,
    values: FloatArray,
    gamma: float,
    gain: FloatArray,
    reached: FloatArray,
    favoured_reached: FloatArray,
    agreement: FloatArray,
    missing: FloatArray,
) -> None:
    """Write what labelling each state would change, if unknown rewards were as given.

    Args:
        model: the empirical model.
        reward: [choices] known rewards, and a guess of the others.
        behaviour: [n, actions] frequencies of actions in the data.
        favoured: [n, actions] the policy that takes the actions that the data favour.
        favoured_visits: [n] its visits.
        policy: [n, actions] the learned policy.
        learned: [n] the values that the learner gives to states.
        values: [n] the values of the learned policy.
        gamma: discount.
        gain: [n] receives how much better the action that the learned values prefer is than those of the data.
        reached: [n] receives the best expected value, to the learner, of what follows an action.
        favoured_reached: [n] receives that of what follows the favoured actions.
        agreement: [n] receives how far the learned policy takes the favoured actions, from 0 to 1.
        missing: [n] receives the visits of the favoured policy that enter by actions that the learned one does not
            take; must be 0.
    """
    n, actions = policy.shape
    q, followed = np.empty(actions), np.empty(actions)
    for s in range(n):
        first, last = model.first_choice[s], model.first_choice[s + 1]
        best, preferred, largest = -np.inf, 0.0, 0.0
        reached[s] = favoured_reached[s] = agreement[s] = gain[s] = 0.0
        most = 0.0
        for a in range(actions):
            most = max(most, favoured[s, a])
        for choice in range(first, last):
            a = model.action[choice]
            after, worth = 0.0, reward[choice]
            short = favoured_visits[s] * max(favoured[s, a] - policy[s, a], 0.0)
            for k in range(model.first_outcome[choice], model.first_outcome[choice + 1]):
                share = model.probability[k]
                after += gamma * share * learned[model.next_state[k]]
                worth += gamma * share * values[model.next_state[k]]
                missing[model.next_state[k]] += short * share
            q[a] = reward[choice] + after if model.seen[choice] else 0.0
            followed[a] = worth
            best, largest = max(best, q[a]), max(largest, abs(q[a]))
            reached[s] = after if choice == first else max(reached[s], after)
            favoured_reached[s] += favoured[s, a] * after
            agreement[s] += policy[s, a] * favoured[s, a] / most if most > 0.0 else 0.0
            gain[s] -= behaviour[s, a] * worth
        ties = 0
        for choice in range(first, last):
            if q[model.action[choice]] >= best - SAME * (1.0 + largest):
                preferred += followed[model.action[choice]]
                ties += 1
        gain[s] += preferred / max(ties, 1)


@kernel
def in_pairs(model: Model, labelled: BoolArray, rewards: FloatArray, guess: float) -> FloatArray:
    """Return known rewards [choices] from those of pairs [n, actions]; a guess where a state is not labelled."""
    found = np.zeros(len(model.action))
    for s in range(len(labelled)):
        for choice in range(model.first_choice[s], model.first_choice[s + 1]):
            if model.seen[choice]:
                found[choice] = rewards[s, model.action[choice]] if labelled[s] else guess
    return found
