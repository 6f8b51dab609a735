"""The reward that UDS imputes to unlabelled transitions."""

import numpy as np

from selectenv.checks import shown
from selectenv.datasets.dataset import OfflineDataset
from selectenv.errors import OptionError
from selectenv.options import DATASET_MINIMUM, REVEALED_MINIMUM
from selectenv.typing import BoolArray, FloatArray


def imputed_rewards(impute: float | str, dataset: OfflineDataset, rewards: FloatArray, masks: BoolArray) -> FloatArray:
    """Return the imputed reward [sets] of each label set.

    Args:
        impute: a number; "min" for the smallest reward that the labels reveal, 0 if they reveal none; or "dataset-min"
            for the smallest hidden reward of the dataset, labelled or not.
        dataset: the data.
        rewards: [size] NaN where unknown.
        masks: [sets, n] the label sets.

    Raises:
        OptionError: another name, or "dataset-min" with data whose rewards are not all there.
    """
    if not isinstance(impute, str):
        return np.full(len(masks), float(impute))
    if impute == DATASET_MINIMUM:
        if not dataset.has_rewards:
            raise OptionError(
                'impute="dataset-min" needs the rewards of the whole dataset, and these data have none; use "min", the '
                "smallest reward revealed so far, or a number"
            )
        return np.full(len(masks), dataset.smallest_reward)
    if impute != REVEALED_MINIMUM:
        raise OptionError(f'impute must be a number, "min" or "dataset-min", not {shown(impute)}')
    smallest = np.where(masks, dataset.reward_summary(rewards).smallest, np.inf).min(axis=1, initial=np.inf)
    return np.where(np.isinf(smallest), 0.0, smallest)


def imputed_reward(impute: float | str, dataset: OfflineDataset, rewards: FloatArray, labels: BoolArray) -> float:
    """Return the imputed reward of one label set [n]; see `imputed_rewards`."""
    if not isinstance(impute, str):
        return float(impute)
    return float(imputed_rewards(impute, dataset, rewards, labels[None])[0])


def oracle_of(impute: float | str) -> str:
    """Return what an imputed reward reveals that no label did, if anything."""
    return "the smallest reward of the dataset" if impute == DATASET_MINIMUM else ""
