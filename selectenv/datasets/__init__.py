"""Datasets: transitions whose rewards stay hidden until a state is labelled."""

from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.from_arrays import from_arrays
from selectenv.datasets.storage import cache_folder, cached, load, save
from selectenv.datasets.tabular_collection import PUBLISHED_SIZE, collect, dataset_spec

__all__ = [
    "PUBLISHED_SIZE",
    "OfflineDataset",
    "cache_folder",
    "cached",
    "collect",
    "dataset_spec",
    "from_arrays",
    "load",
    "save",
]
