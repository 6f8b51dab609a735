"""Learners from limited feedback (RLLF): a dataset and partly known rewards in, a policy out."""

from selectenv.learners.base import FitResult, Learner, as_learner
from selectenv.learners.cloning import CloningLearner
from selectenv.learners.iql import IqlLearner
from selectenv.learners.registry import LEARNERS, LearnerDefaults, make_learner, register_learner
from selectenv.learners.tabular.exact import ExactLearner
from selectenv.learners.tabular.sampled import SampledLearner
from selectenv.learners.training_run import Settings

__all__ = [
    "LEARNERS",
    "CloningLearner",
    "ExactLearner",
    "FitResult",
    "IqlLearner",
    "Learner",
    "LearnerDefaults",
    "SampledLearner",
    "Settings",
    "as_learner",
    "make_learner",
    "register_learner",
]
