"""The options of a problem and its environment: five dataclasses with their defaults, checks and documentation.

`make_problem` and `gym.make` take them as flat keywords; `take` picks those of one group by field name.
"""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from selectenv.checks import (
    LARGEST_REWARD,
    check_flag,
    check_int,
    check_name,
    check_path,
    check_real,
    did_you_mean,
    is_int,
    is_real,
    shown,
)
from selectenv.errors import DatasetError, OptionError, PhaseError, UnknownNameError

TEST_SHARES = (0.55, 0.53, 0.51, 0.48, 0.45)
DATASETS = ("train", *(f"test-{share}" for share in TEST_SHARES))
SCALES = ("fast", "paper")
"""Sizes of MinAtar data and lengths of training, by name; "paper" is the published one."""
LARGEST_SIZE = 2**31 - 1
"""Largest number of transitions of a dataset, and of episodes of an evaluation."""
MIXTURES = ("all", "non-expert")
STATE, EPISODE = "state", "episode"
GROUPINGS = (STATE, EPISODE)
"""What labels cover, by name."""
SOLVERS = ("exact", "sampled")
UNSEEN = ("zero", "exclude")
REVEALED_MINIMUM, DATASET_MINIMUM = "min", "dataset-min"
MINIMA = (REVEALED_MINIMUM, DATASET_MINIMUM)
"""Imputed rewards with a name; the second is an oracle, because it depends on rewards that no label revealed."""
MAXIMUM = "max"
"""Value of `expectile` that backs up the largest action value."""
EVALUATORS = ("exact", "rollout")
REWARD_MODES = ("final", "marginal")
PHASES = ("train", "test")
OCCUPANCIES = ("normalised", "published")
EXPLOITS = ("best", "pooled")
RENDER_MODES = ("ansi", "rgb_array")
FEATURES = (
    "labelled",
    "visitation",
    "on_policy_visitation",
    "value",
    "predecessors",
    "termination",
    "reward",
    "budget",
    "reward_scale",
)
"""The parts of an observation; the last two have one entry, the others one per state."""


def check_share(share: Any) -> float | tuple[float, float]:
    """Return an expert share: a number in [0, 1], or a (low, high) pair of such numbers.

    Raises:
        OptionError: it is something else.
    """
    if not isinstance(share, tuple | list):
        return check_real("expert_share", share, "[0, 1]")
    if len(share) == 2 and all(is_real(end) for end in share) and 0 <= share[0] <= share[1] <= 1:
        return float(share[0]), float(share[1])
    raise OptionError(
        "expert_share must be a number in [0, 1], or a (low, high) pair of such numbers with low <= high, not "
        f"{shown(share)}"
    )


def _keep(options: object, name: str, value: float) -> None:
    """Set a field of a frozen dataclass to the checked value: numbers of NumPy's types become Python's own."""
    object.__setattr__(options, name, value)


@dataclass(frozen=True)
class DataOptions:
    """The data of a problem.

    Attributes:
        dataset: "train", "test-0.55", ... "test-0.45"; an `OfflineDataset`, or the file of one.
        dataset_seed: seed of collected data.
        dataset_size: number of transitions; defaults to the published 100,000 in tabular worlds (in Sparse to 20 per
            state where that is more), to that of the scale in MinAtar.
        scale: MinAtar: "paper" (1,000,000 transitions, and networks are trained as published) or "fast", the default
            (fewer transitions and updates, and larger steps).
        expert_share: probability of an expert action in the data; defaults to that of the named dataset. Control worlds
            also take a (low, high) pair, between which every episode draws its own; (0, 1) is LunarLander's default.
        mixture: how the other actions are drawn: from "all" of them, or from the "non-expert" ones; defaults to the
            published way of the world.
        expert: "published" or "optimal" (value iteration everywhere); MinAtar: "published" (DQN), "tabular" (Breakout),
            or an .npz file of `selectenv train-expert`; control worlds: "published", a file of `selectenv train-expert`
            or of Stable-Baselines3, a function from an observation to an action, or None for random data.
        groups: what a label covers: None for the world's default (200 clusters in the control worlds, states
            elsewhere), "state", "episode" for whole episodes, the number of clusters of vectors (int), or an array with
            the group of each state.
        cache: keep collected data in the user's cache directory.
    """

    dataset: Any = "train"
    dataset_seed: int = 0
    dataset_size: int | None = None
    scale: str | None = None
    expert_share: float | tuple[float, float] | None = None
    mixture: str | None = None
    expert: Any = "published"
    groups: Any = None
    cache: bool = True

    def __post_init__(self) -> None:
        """Check the values that can be checked without a world."""
        _keep(self, "dataset_seed", check_int("dataset_seed", self.dataset_seed, 0))
        if self.dataset_size is not None:
            _keep(self, "dataset_size", check_int("dataset_size", self.dataset_size, 1, LARGEST_SIZE, DatasetError))
        if self.scale is not None:
            check_name("scale", self.scale, SCALES)
        if self.expert_share is not None:
            object.__setattr__(self, "expert_share", check_share(self.expert_share))
        if self.mixture is not None:
            check_name("mixture", self.mixture, MIXTURES)
        if not (self.expert is None or callable(self.expert) or isinstance(self.expert, str | os.PathLike)):
            hint = "; give a function: lambda observation: model.predict(observation, deterministic=True)[0]"
            raise OptionError(
                "expert must be the name of an expert, the path of a file, a function or None, not "
                f"{shown(self.expert)}{hint if hasattr(self.expert, 'predict') else ''}"
            )
        if isinstance(self.groups, str):
            check_grouping(self.groups)
        elif is_int(self.groups):
            _keep(self, "groups", check_int("groups", self.groups))
        check_flag("cache", self.cache)

    @property
    def one_share(self) -> float:
        """The expert share of all episodes.

        Raises:
            OptionError: every episode is to draw its own.
        """
        if not isinstance(self.expert_share, float):
            raise OptionError(
                f"expert_share must be a number in [0, 1] here, not {shown(self.expert_share)}: only in control worlds "
                "can every episode have its own"
            )
        return self.expert_share

    @property
    def is_named(self) -> bool:
        """Whether the data are those of a named dataset, which is collected from the world."""
        return isinstance(self.dataset, str) and self.dataset in DATASETS

    @property
    def collects(self) -> bool:
        """Whether any option (other than the scale) asks for a particular way of collecting data."""
        return any(
            getattr(self, name) != getattr(DataOptions, name)
            for name in ("dataset_seed", "dataset_size", "expert_share", "mixture", "expert")
        )


@dataclass(frozen=True)
class LearnerOptions:
    """The learner from limited feedback.

    Attributes:
        learner: "uds" or "adapted", tables; "iql" (UDS), "iql-adapted", "bc" (behaviour cloning) or "bc-greedy",
            networks; or the name of a registered learner. Defaults to "iql" in Freeway, Seaquest and Asterix, to "uds"
            elsewhere.
        solver: tables: "exact" on the empirical model, or "sampled", the published stochastic procedure.
        impute: UDS: the reward of unlabelled transitions: a number, or "min" for the smallest reward revealed so far (0
            before any). "dataset-min", the published variant, is an oracle: the smallest reward in the data, labelled
            or not; the test phase refuses it.
        unseen: tables: the value of an action never taken at a state: "zero", or "exclude" it.
        expectile: what is backed up: "max", the largest action value, or a number in (0, 1), that expectile of the
            actions that the data took. Defaults to 0.7 for "iql" and for exact tables in Breakout, to "max" elsewhere.
        gamma: discount factor of learning, 0 <= gamma < 1.
        learner_seed: seed of the sampled learner, or of training networks.
        passes: maximum number of passes of the sampled learner; defaults to the world's published number.
    """

    learner: str | None = None
    solver: str = "exact"
    impute: float | str = 0
    unseen: str = "zero"
    expectile: float | str | None = None
    gamma: float = 0.99
    learner_seed: int = 0
    passes: int | None = None

    def __post_init__(self) -> None:
        """Check the values that can be checked without the learner."""
        check_name("solver", self.solver, SOLVERS)
        check_name("value of `unseen`", self.unseen, UNSEEN)
        if self.expectile is not None and self.expectile != MAXIMUM:
            _keep(self, "expectile", check_real("expectile", self.expectile, "(0, 1)"))
        _keep(self, "gamma", check_real("gamma", self.gamma, "[0, 1)"))
        _keep(self, "learner_seed", check_int("learner_seed", self.learner_seed, 0))
        named = isinstance(self.impute, str) and self.impute in MINIMA
        if not named and not (is_real(self.impute) and abs(float(self.impute)) <= LARGEST_REWARD):
            raise OptionError(
                f'impute must be a number of magnitude {LARGEST_REWARD:g} or less, "min" or "dataset-min", not '
                f"{shown(self.impute)}"
            )
        if self.passes is not None:
            _keep(self, "passes", check_int("passes", self.passes))


@dataclass(frozen=True)
class TrainingOptions:
    """The training of networks; tables have none of these options.

    Attributes:
        updates: number of updates of a training run; defaults to that of the world and the scale.
        learner_runs: training runs whose returns are averaged.
        evaluations: evaluations of each training run whose returns are averaged, equally spaced over the last 40 % of
            the updates: ten are at 64, 68, ..., 100 % of them. One, as published, is that of the last weights.
        warm_start: whether a refit within an episode continues from the networks of the one before, with the new
            labels. The performance of an episode is always learned from scratch.
        warm_share: share of the updates that such a refit makes.
        warm_growth: a refit trains from scratch once the number of labels that can change what is learned has grown by
            this factor since the last training from scratch; infinity means never.
        checkpoints: directory of checkpoints to resume from.
    """

    updates: int | None = None
    learner_runs: int = 1
    evaluations: int = 1
    warm_start: bool = False
    warm_share: float = 0.2
    warm_growth: float = 2.0
    checkpoints: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        if self.updates is not None:
            _keep(self, "updates", check_int("updates", self.updates))
        for name in ("learner_runs", "evaluations"):
            _keep(self, name, check_int(name, getattr(self, name)))
        check_flag("warm_start", self.warm_start)
        _keep(self, "warm_share", check_real("warm_share", self.warm_share, "(0, 1]"))
        if self.warm_growth != math.inf:
            _keep(self, "warm_growth", check_real("warm_growth", self.warm_growth, "(1, inf)"))
        if self.checkpoints is not None:
            check_path("checkpoints", self.checkpoints)

    @property
    def checkpoint_directory(self) -> Path | None:
        """The directory of checkpoints, if there is one."""
        return None if self.checkpoints is None else Path(self.checkpoints)


@dataclass(frozen=True)
class EvaluationOptions:
    """The evaluation of learned policies.

    Attributes:
        evaluator: "exact" (the default, tabular worlds only) or "rollout".
        rollouts: episodes of the rollout evaluator; defaults to 10,000, in MinAtar and in the control worlds to 50.
        evaluation_seed: seed of the rollout evaluator.
        discount: discount factor of the reported return.
    """

    evaluator: str | None = None
    rollouts: int | None = None
    evaluation_seed: int = 0
    discount: float = 1.0

    def __post_init__(self) -> None:
        """Check the values."""
        if self.evaluator is not None:
            check_name("evaluator", self.evaluator, EVALUATORS)
        if self.rollouts is not None:
            _keep(self, "rollouts", check_int("rollouts", self.rollouts, 1, LARGEST_SIZE))
        _keep(self, "evaluation_seed", check_int("evaluation_seed", self.evaluation_seed, 0))
        _keep(self, "discount", check_real("discount", self.discount, "(0, 1]"))


@dataclass(frozen=True)
class EnvironmentOptions:
    """The episodes of an environment.

    Attributes:
        budget: number of labels (int) or share of the states (float); for a (low, high) pair of shares, every reset
            draws a share uniformly between them.
        reward_mode: "final" pays the performance at the last step, "marginal" its change at every step.
        phase: "train" exposes the evaluator at `env.unwrapped.problem`, "test" locks it until the episode has ended.
        initial_ratio: share of all states that is labelled at random at reset, out of the budget.
        labels_per_refit: refit the learner after this many labels (int), or after this share of the states (float);
            defaults to 1 in tabular worlds, to 0.02 in MinAtar, and for networks at the fast scale to a tenth of the
            budget.
        occupancy: "normalised", or "published": how `on_policy_visitation` treats tied actions.
        exploit: which labelled states `predecessors` leads to: the "best" one that has unlabelled predecessors, or all
            near-best ones, "pooled"; defaults to "pooled" for data with images (the games), to "best" elsewhere.
        features: the parts of the observation, a list of names of `FEATURES`; defaults to all of them. What is not
            asked for is not computed.
        render_mode: "ansi" or "rgb_array".
    """

    budget: Any = 0.3
    reward_mode: str = "final"
    phase: str = "train"
    initial_ratio: float = 0.0
    labels_per_refit: float | None = None
    occupancy: str = "normalised"
    exploit: str | None = None
    features: Sequence[str] | None = None
    render_mode: str | None = None

    def __post_init__(self) -> None:
        """Check the values that can be checked without a problem."""
        check_name("reward_mode", self.reward_mode, REWARD_MODES)
        check_name("phase", self.phase, PHASES)
        if self.phase == "test" and self.reward_mode != "final":
            raise PhaseError(
                'the test phase allows only reward_mode="final": marginal rewards disclose what the evaluator knows'
            )
        _keep(self, "initial_ratio", check_real("initial_ratio", self.initial_ratio, "[0, 1]"))
        check_name("occupancy", self.occupancy, OCCUPANCIES)
        if self.exploit is not None:
            check_name("value of `exploit`", self.exploit, EXPLOITS)
        if self.features is not None:
            object.__setattr__(self, "features", _checked_features(self.features))
        if self.render_mode is not None:
            check_name("render_mode", self.render_mode, RENDER_MODES)


def _checked_features(features: Any) -> tuple[str, ...]:
    """Return the names of features in the order of `FEATURES`.

    Raises:
        OptionError: they are not a list of different names, or there are none.
        UnknownNameError: there is no such feature.
    """
    if isinstance(features, str) or not isinstance(features, Iterable) or getattr(features, "ndim", 1) == 0:
        raise OptionError(f"features must be a list of names, such as ['labelled', 'value'], not {shown(features)}")
    chosen = [check_name("feature", name, FEATURES) for name in features]
    if not chosen or len(set(chosen)) < len(chosen):
        raise OptionError(f"features must be different names, and at least one; got {shown(chosen)}")
    return tuple(name for name in FEATURES if name in chosen)


GROUPS = (DataOptions, LearnerOptions, TrainingOptions, EvaluationOptions, EnvironmentOptions)
G = TypeVar("G", DataOptions, LearnerOptions, TrainingOptions, EvaluationOptions, EnvironmentOptions)


def check_grouping(name: str) -> str:
    """Return a value of `groups` that is text.

    Raises:
        UnknownNameError: it does not name what labels cover.
    """
    if name not in GROUPINGS:
        number = name.strip().removeprefix("-").isdecimal()
        hint = f"allowed: {', '.join(GROUPINGS)}. Did you mean the number {name.strip()}?"
        raise UnknownNameError(
            f"unknown value of `groups` {shown(name)}, which is a number of clusters, an array with the group of each "
            f"state, or a name; {hint if number else did_you_mean(name, GROUPINGS)}"
        )
    return name


def names(*groups: type) -> list[str]:
    """Return the field names of option groups, in order."""
    return [option.name for group in groups for option in fields(group)]


def take(group: type[G], options: Mapping[str, Any]) -> G:
    """Return the group made of those options that are its fields."""
    return group(**{name: options[name] for name in names(group) if name in options})


def own_options(options: Mapping[str, Any], allowed: Iterable[str], known: Iterable[str]) -> dict[str, Any]:
    """Return the options outside ``known``, which must all be ``allowed``.

    Raises:
        UnknownNameError: an option that exists nowhere; the message names the nearest ones.
    """
    known, allowed = list(known), list(allowed)
    rest = {name: value for name, value in options.items() if name not in known}
    for name in rest:
        if name not in allowed:
            raise UnknownNameError(f"unknown option {shown(name)}; {did_you_mean(name, sorted({*known, *allowed}))}")
    return rest
