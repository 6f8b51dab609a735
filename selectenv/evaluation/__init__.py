"""Evaluators: policy -> expected return in the true world."""

from selectenv.evaluation.engine import ReturnEngine
from selectenv.evaluation.evaluator import Calls, Evaluator
from selectenv.evaluation.exact_returns import ExactReturns
from selectenv.evaluation.game_returns import GameReturns
from selectenv.evaluation.rollout_returns import EnvironmentReturns, RolloutReturns

__all__ = [
    "Calls",
    "EnvironmentReturns",
    "Evaluator",
    "ExactReturns",
    "GameReturns",
    "ReturnEngine",
    "RolloutReturns",
]
