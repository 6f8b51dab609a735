"""The reward that UDS imputes to unlabelled transitions."""

import numpy as np

from selectenv.datasets.dataset import OfflineDataset
from selectenv.typing import FloatArray


def imputed_reward(impute: float | str, dataset: OfflineDataset, rewards: FloatArray) -> float:
    """Return the imputed reward: a number as it is, or for "min" the smallest of ``rewards`` (0 if none is known).

    The hidden rewards of the dataset count as known, whatever is labelled.

    Args:
        impute: a number or "min".
        dataset: the data.
        rewards: [size] NaN where unknown.
    """
    if not isinstance(impute, str):
        return float(impute)
    if rewards is dataset.hidden_reward:
        return dataset.smallest_reward
    return 0.0 if np.isnan(rewards).all() else float(np.nanmin(rewards))
