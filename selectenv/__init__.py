"""Which rewards matter? Gymnasium environments for choosing the states to label in an offline dataset."""

from selectenv.datasets import (
    OfflineDataset,
    example_log,
    from_arrays,
    from_csv,
    from_dataframe,
    from_episodes,
    from_gymnasium,
    from_minari,
    from_parquet,
    group_states,
)
from selectenv.domains.gym_env import GymWorld
from selectenv.domains.tabular import TabularWorld, from_outcomes, from_toy_text
from selectenv.env import RewardSelectionEnv
from selectenv.factory import make_env, make_problem, make_vector_env
from selectenv.labelling.state_policy import load_policy
from selectenv.learners import FitResult, register_learner
from selectenv.policies import Policy, TablePolicy
from selectenv.problem import SelectionProblem
from selectenv.registration import env_id, register_all, register_world
from selectenv.session import LabellingSession
from selectenv.vector_checker import check_vector_env
from selectenv.vector_env import RewardSelectionVectorEnv
from selectenv.view import SelectionView
from selectenv.worlds import CONTROL, GAMES, TABULAR, WORLDS, WorldDefaults

__version__ = "0.1.0"

__all__ = [
    "CONTROL",
    "GAMES",
    "TABULAR",
    "WORLDS",
    "FitResult",
    "GymWorld",
    "LabellingSession",
    "OfflineDataset",
    "Policy",
    "RewardSelectionEnv",
    "RewardSelectionVectorEnv",
    "SelectionProblem",
    "SelectionView",
    "TablePolicy",
    "TabularWorld",
    "WorldDefaults",
    "check_vector_env",
    "env_id",
    "example_log",
    "from_arrays",
    "from_csv",
    "from_dataframe",
    "from_episodes",
    "from_gymnasium",
    "from_minari",
    "from_outcomes",
    "from_parquet",
    "from_toy_text",
    "group_states",
    "load_policy",
    "make_env",
    "make_problem",
    "make_vector_env",
    "register_learner",
    "register_world",
]

register_all()
