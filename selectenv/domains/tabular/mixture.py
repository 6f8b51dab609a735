"""The expert of a world (value iteration, or the published hand-made one), and mixtures of it with random actions."""

import numpy as np

from selectenv.checks import check_name, check_real
from selectenv.domains.tabular.world import TabularWorld
from selectenv.kernels.tabular.single import learn_one
from selectenv.options import MIXTURES
from selectenv.typing import BoolArray, FloatArray

GAMMA = 0.99
EXPERTS = ("published", "optimal")


def optimal_policy(world: TabularWorld, gamma: float = GAMMA) -> FloatArray:
    """Return the action probabilities [n, actions] of the optimal discounted policy; ties are split uniformly."""
    n, actions = world.n_states, world.n_actions
    return learn_one(world.model, np.ones(n, bool), gamma, 0.0, False, np.empty((n, actions)))[2]


def expert_actions(world: TabularWorld, expert: str = "published") -> BoolArray:
    """Return which actions [n, actions] the expert may take.

    Args:
        world: the world.
        expert: "published" is the hand-made expert where the published data had one and value iteration elsewhere;
            "optimal" is always value iteration.
    """
    check_name("expert", expert, EXPERTS)
    if expert == "published" and world.published_expert is not None:
        return world.published_expert
    return optimal_policy(world) > 0


def mixture_policy(expert: BoolArray, share: float, rest: str) -> FloatArray:
    """Return action probabilities [n, actions] that follow the expert with probability ``share``.

    Args:
        expert: [n, actions] the expert's actions, all equally likely.
        share: probability of an expert action, 0 to 1.
        rest: distribution otherwise: uniform over "all" actions, or over the "non-expert" ones (over all actions
            where every action is an expert action).
    """
    check_name("mixture", rest, MIXTURES)
    check_real("expert_share", share, "[0, 1]")
    others = ~expert if rest == "non-expert" else np.ones_like(expert)
    others = np.where(others.any(axis=1, keepdims=True), others, True)
    follow = expert / expert.sum(axis=1, keepdims=True)
    deviate = others / others.sum(axis=1, keepdims=True)
    mixed: FloatArray = share * follow + (1 - share) * deviate
    return mixed
