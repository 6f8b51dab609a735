"""Datasets: transitions whose rewards stay hidden until a state is labelled."""

from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.example_log import example_log
from selectenv.datasets.from_arrays import from_arrays
from selectenv.datasets.from_recordings import from_episodes, from_gymnasium, from_minari
from selectenv.datasets.from_tables import from_csv, from_dataframe, from_parquet
from selectenv.datasets.grouping import group_states
from selectenv.datasets.storage import cache_folder, cached, load, save
from selectenv.datasets.tabular_collection import PUBLISHED_SIZE, collect, dataset_spec

__all__ = [
    "PUBLISHED_SIZE",
    "OfflineDataset",
    "cache_folder",
    "cached",
    "collect",
    "dataset_spec",
    "example_log",
    "from_arrays",
    "from_csv",
    "from_dataframe",
    "from_episodes",
    "from_gymnasium",
    "from_minari",
    "from_parquet",
    "group_states",
    "load",
    "save",
]
