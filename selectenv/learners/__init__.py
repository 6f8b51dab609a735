"""Learners from limited feedback: dataset + labelled states -> policy."""

import os
import tempfile
from pathlib import Path

from selectenv.checks import check_int, check_name, check_real, is_real
from selectenv.datasets.dataset import OfflineDataset
from selectenv.errors import OptionError
from selectenv.learners.base import Learned, Learner
from selectenv.learners.iql import PictureLearner, PlayerLearner
from selectenv.learners.tabular.exact import ExactLearner
from selectenv.learners.tabular.sampled import SampledLearner
from selectenv.learners.training_run import Settings

TABLE_LEARNERS = ("uds", "adapted")
NETWORK_LEARNERS = {"iql": "uds", "iql-adapted": "adapted", "bc": "none", "bc-greedy": "none"}
"""Learners with networks, and their rule for unlabelled states."""
LEARNERS = (*TABLE_LEARNERS, *NETWORK_LEARNERS)
SOLVERS = ("exact", "sampled")
UNSEEN = ("zero", "exclude")

__all__ = [
    "LEARNERS",
    "NETWORK_LEARNERS",
    "SOLVERS",
    "UNSEEN",
    "ExactLearner",
    "Learned",
    "Learner",
    "PictureLearner",
    "PlayerLearner",
    "SampledLearner",
    "Settings",
    "make_learner",
]


def make_learner(
    dataset: OfflineDataset,
    learner: str = "uds",
    *,
    solver: str = "exact",
    impute: float | str = 0,
    unseen: str = "zero",
    gamma: float = 0.99,
    seed: int = 0,
    passes: int = 20,
    settings: Settings | None = None,
    runs: int = 1,
    checkpoints: Path | None = None,
) -> Learner:
    """Return a learner on ``dataset``.

    Args:
        dataset: the data.
        learner: "uds" or "adapted", tables; "iql" (UDS), "iql-adapted", "bc" or "bc-greedy", networks.
        solver: tables: "exact" on the empirical model, or "sampled", the published stochastic procedure.
        impute: UDS: reward of unlabelled transitions: a number, or "min" for the smallest reward in the data.
        unseen: tables: what an action never taken at a state is worth: "zero", or "exclude" it.
        gamma: discount, 0 <= gamma < 1.
        seed: of sampled passes, or of training.
        passes: sampled: at most so many passes.
        settings: networks: how they are trained.
        runs: networks: training runs that are averaged.
        checkpoints: networks: folder of training runs to go on with.
    """
    check_name("learner", learner, LEARNERS)
    check_name("solver", solver, SOLVERS)
    exclude = check_name("value of `unseen`", unseen, UNSEEN) == "exclude"
    check_real("gamma", gamma, "[0, 1)")
    passes, seed = check_int("passes", passes), check_int("learner_seed", seed, 0)
    runs = check_int("learner_runs", runs)
    if isinstance(impute, str) and impute == "min":
        fill = dataset.smallest_reward
    elif not is_real(impute):
        raise OptionError(f'impute must be a finite number or "min", not {impute!r}')
    else:
        fill = float(impute)
    rule = NETWORK_LEARNERS.get(learner, learner)
    if rule != "uds" and impute != 0:
        raise OptionError(f"the learner {learner!r} ignores unlabelled transitions: it has nothing to impute")
    if learner in NETWORK_LEARNERS:
        if checkpoints is not None:
            _make_folder(checkpoints)
        if solver != "exact" or exclude:
            raise OptionError(
                f'the learner {learner!r} is a network: it has no solver="sampled" and no unseen="exclude"'
            )
        return PictureLearner(
            dataset, rule, Settings() if settings is None else settings, float(gamma), fill, seed, runs, checkpoints,
            likeliest=learner == "bc-greedy",
        )  # fmt: skip
    if runs != 1 or settings is not None or checkpoints is not None:
        raise OptionError(f"the learner {learner!r} is a table: it is not trained in runs of updates")
    if solver == "exact":
        return ExactLearner(dataset, rule == "adapted", float(gamma), fill, exclude)
    return SampledLearner(dataset, rule == "adapted", float(gamma), fill, exclude, seed, passes)


def _make_folder(path: Path) -> None:
    """Make sure that files can be written there, before hours of training.

    Raises:
        OptionError: they cannot.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise OptionError(f"checkpoints cannot be written to {os.fspath(path)!r}: {error}") from None
