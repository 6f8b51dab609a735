"""Learners from limited feedback: dataset + labelled states -> policy."""

from selectenv.checks import check_int, check_name, check_real, is_real
from selectenv.datasets.dataset import OfflineDataset
from selectenv.errors import OptionError
from selectenv.learners.exact import ExactLearner
from selectenv.learners.learner import Learned, Learner
from selectenv.learners.sampled import SampledLearner

LEARNERS = ("uds", "adapted")
SOLVERS = ("exact", "sampled")
UNSEEN = ("zero", "exclude")

__all__ = ["LEARNERS", "SOLVERS", "UNSEEN", "ExactLearner", "Learned", "Learner", "SampledLearner", "make_learner"]


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
) -> Learner:
    """Return a learner on ``dataset``.

    Args:
        dataset: the data.
        learner: "uds" or "adapted".
        solver: "exact" on the empirical model, or "sampled", the published stochastic procedure.
        impute: UDS: reward of unlabelled transitions: a number, or "min" for the smallest reward in the data.
        unseen: what an action never taken at a state is worth: "zero", or "exclude" it.
        gamma: discount, 0 <= gamma < 1.
        seed: sampled: seed of the passes.
        passes: sampled: at most so many passes.
    """
    adapted = check_name("learner", learner, LEARNERS) == "adapted"
    check_name("solver", solver, SOLVERS)
    exclude = check_name("value of `unseen`", unseen, UNSEEN) == "exclude"
    check_real("gamma", gamma, "[0, 1)")
    check_int("passes", passes)
    check_int("learner_seed", seed, 0)
    if isinstance(impute, str) and impute == "min":
        fill = dataset.smallest_reward
    elif not is_real(impute):
        raise OptionError(f'impute must be a finite number or "min", not {impute!r}')
    else:
        fill = float(impute)
    if adapted and impute != 0:
        raise OptionError("the adapted learner ignores unlabelled transitions: it has nothing to impute")
    if solver == "exact":
        return ExactLearner(dataset, adapted, float(gamma), fill, exclude)
    return SampledLearner(dataset, adapted, float(gamma), fill, exclude, seed, passes)
