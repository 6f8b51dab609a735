"""Which rewards matter? Gymnasium environments for choosing the states to label in an offline dataset."""

from selectenv.datasets import OfflineDataset, from_arrays
from selectenv.domains.tabular import TabularWorld, from_outcomes, from_toy_text
from selectenv.env import RewardSelectionEnv
from selectenv.problem import SelectionProblem
from selectenv.registration import TABULAR, WORLDS, env_id, make_env, make_problem, register_all

__version__ = "0.1.0"

__all__ = [
    "TABULAR",
    "WORLDS",
    "OfflineDataset",
    "RewardSelectionEnv",
    "SelectionProblem",
    "TabularWorld",
    "env_id",
    "from_arrays",
    "from_outcomes",
    "from_toy_text",
    "make_env",
    "make_problem",
]

register_all()
