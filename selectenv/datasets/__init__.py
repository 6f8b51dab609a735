"""Datasets: transitions whose rewards stay hidden until a state is labelled."""

from selectenv.datasets.collect import PUBLISHED_SIZE, collect, dataset_spec
from selectenv.datasets.dataset import OfflineDataset, from_arrays
from selectenv.datasets.files import cache_folder, cached, load, save

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
