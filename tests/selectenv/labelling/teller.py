"""A person who knows the hidden rewards of a world, and small datasets to ask about."""

import warnings

import numpy as np

import agents
import selectenv
from agents.base import RankingAgent, Taxonomy
from selectenv.errors import BudgetWarning

FREE = [name for name in agents.AGENTS if agents.make(name).taxonomy.evaluator == "never"]
"""Strategies that never ask the evaluator."""


class Stranger(RankingAgent):
    """A strategy of somebody's own."""

    name = "stranger"
    taxonomy = Taxonomy(test_loop="closed", training="none", evaluator="never")

    def scores(self, obs, info):
        return np.where(info["action_mask"] > 0, obs["visitation"], np.nan)


def truth(dataset, query):
    """Return the hidden rewards of a query, one per distinct transition."""
    unique = dataset.unique_transitions
    number = int(dataset.numbers([query.id])[0])
    first, last = np.searchsorted(unique.state, [number, number + 1])
    return unique.mean_rewards(dataset.hidden_reward)[0][first:last].tolist()


def answer_all(session, dataset, budget=None):
    """Answer one query after the other with the hidden rewards; return the ids."""
    asked = []
    while (budget is None or len(asked) < budget) and (query := session.ask()):
        asked.append(query.id)
        session.tell(query.id, truth(dataset, query))
    return asked


def answer_with(session, value, **who):
    """Answer one query after the other with the same value; return the ids."""
    asked = []
    while query := session.ask(**who):
        asked.append(query.id)
        session.tell(query.id, value, **who)
    return asked


def episode(problem, strategy, budget, seed, **options):
    """Return the ids that an episode of the environment labels."""
    agent = agents.make(strategy) if isinstance(strategy, str) else strategy
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetWarning)
        env = selectenv.RewardSelectionEnv(problem, budget, **options)
        return agents.play(env, agent, seed=seed).ids.tolist()


def town():
    """Return a small log with text states, made by hand."""
    return selectenv.from_arrays(
        states=["home", "shop", "home", "road", "home", "shop"],
        actions=[0, 1, 1, 0, 0, 1],
        next_states=["shop", "end", "road", "home", "shop", "home"],
        terminated=[False, True, False, False, False, False],
    )
