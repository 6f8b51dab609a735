"""The learners by name."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from selectenv.checks import check_instance, check_int, shown
from selectenv.datasets.dataset import OfflineDataset
from selectenv.errors import OptionError, OptionTypeError
from selectenv.extensions import Registry
from selectenv.io.atomic import make_directory
from selectenv.learners.architectures import check_observations
from selectenv.learners.base import Learner, as_learner
from selectenv.learners.cloning import CloningLearner
from selectenv.learners.iql import IqlLearner
from selectenv.learners.tabular.exact import ExactLearner
from selectenv.learners.tabular.sampled import SampledLearner
from selectenv.learners.training_run import Settings
from selectenv.options import MAXIMUM, LearnerOptions, TrainingOptions, names, own_options, take

F = TypeVar("F", bound=Callable[..., Any])
TABLE_OPTIONS = ("solver", "unseen", "passes")
FAST_REFITS = 10
"""Refits of neural learners per episode, at the fast scale."""


@dataclass(frozen=True)
class Preset:
    """Size of the data of a world, and hyperparameters of the networks that are trained on them."""

    transitions: int
    updates: int
    rate: float
    target_step: float = 0.005
    expectile: float = 0.7
    decay: bool = False
    """Whether the learning rate falls linearly to 0."""

    def __post_init__(self) -> None:
        """Check the numbers."""
        check_int("transitions", self.transitions)
        self.settings()

    def settings(self, updates: int | None = None) -> Settings:
        """Return the hyperparameters of a training run, with another number of updates if one is given."""
        return Settings(
            self.updates if updates is None else updates,
            self.rate,
            self.target_step,
            self.expectile,
            decay=self.decay,
        )


@dataclass(frozen=True)
class LearnerDefaults:
    """Defaults of learning in a world, as in the published protocol."""

    passes: int = 20
    """Passes of the sampled learner."""
    expectile: float | str = MAXIMUM
    """Expectile of exact tables."""
    paper: Preset = Preset(1_000_000, 125_000, 3e-4)
    """The published data and training of networks."""
    fast: Preset = Preset(1_000_000, 80_000, 3e-4)
    """The default: the same data and fewer updates."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_int("passes", self.passes)
        LearnerOptions(expectile=self.expectile)
        check_instance("paper", self.paper, Preset)
        check_instance("fast", self.fast, Preset)

    def preset(self, scale: str | None) -> Preset:
        """Return the preset of a scale."""
        return self.paper if scale == "paper" else self.fast

    def settings(self, scale: str | None, updates: int | None) -> Settings:
        """Return the hyperparameters of a training run."""
        return self.preset(scale).settings(updates)


@dataclass(frozen=True)
class LearnerRow:
    """A row of the table of learners."""

    make: Callable[[LearnerOptions, TrainingOptions, LearnerDefaults, str | None, dict[str, Any]], Learner]
    """Options of learner and training, the world's defaults, scale and the learner's own options -> learner."""
    parameters: tuple[str, ...] = ()
    """Names of the learner's own options."""
    uses_scale: bool = False
    """Whether the scale decides how it is trained."""
    fast_refits: int | None = None
    """Refits per episode at the fast scale; None leaves it to the world."""
    check: Callable[[OfflineDataset], object] = bool
    """Raises an error if the learner cannot learn from a dataset."""
    summary: str = ""
    """First line of the docstring of a registered learner."""


def _tabular(rule: str) -> LearnerRow:
    def make(
        options: LearnerOptions,
        training: TrainingOptions,
        defaults: LearnerDefaults,
        scale: str | None,
        own: dict[str, Any],
    ) -> Learner:
        for option in _given(training):
            raise OptionError(f"the learner {rule!r} is a table: it has no option {option!r}")
        _check_imputation(options, rule == "uds")
        shared = (rule, float(options.gamma), _imputed(options), options.unseen == "exclude")
        if options.solver == "exact":
            expectile = defaults.expectile if options.expectile is None else options.expectile
            return ExactLearner(*shared, None if isinstance(expectile, str) else expectile)
        if options.expectile is not None:
            raise OptionError('only solver="exact" has an expectile: the sampled solver backs up the maximum')
        passes = defaults.passes if options.passes is None else options.passes
        return SampledLearner(*shared, options.learner_seed, passes)

    return LearnerRow(make)


def _neural(kind: type[IqlLearner] | type[CloningLearner], **fixed: Any) -> LearnerRow:
    def make(
        options: LearnerOptions,
        training: TrainingOptions,
        defaults: LearnerDefaults,
        scale: str | None,
        own: dict[str, Any],
    ) -> Learner:
        for option in {*_given(options)} & {*TABLE_OPTIONS}:
            raise OptionError(f"the learner {options.learner!r} is a network: it has no option {option!r}")
        _check_imputation(options, fixed.get("rule") == "uds")
        more: dict[str, Any] = {"impute": _imputed(options)} if fixed.get("rule") == "uds" else {}
        settings = replace(defaults.settings(scale, training.updates), evaluations=training.evaluations)
        if options.expectile is not None:
            if kind is not IqlLearner or isinstance(options.expectile, str):
                raise OptionError(f"the learner {options.learner!r} cannot have expectile={options.expectile!r}")
            settings = replace(settings, expectile=options.expectile)
        if training.checkpoint_directory is not None:
            make_directory("checkpoints", training.checkpoint_directory)
        return kind(
            settings=settings,
            seed=options.learner_seed,
            training_runs=training.learner_runs,
            warm_start=training.warm_start,
            warm_share=training.warm_share,
            warm_growth=training.warm_growth,
            checkpoints=training.checkpoint_directory,
            gamma=float(options.gamma),
            **fixed,
            **more,
        )

    return LearnerRow(make, uses_scale=True, fast_refits=FAST_REFITS, check=check_observations)


def _foreign(name: str, factory: Any) -> LearnerRow:
    """Return the row of a registered learner: a class or a function whose parameters are its options."""
    try:
        parameters = tuple(inspect.signature(factory).parameters)
    except Exception:  # also what a broken __repr__ raises inside of inspect
        raise OptionTypeError(
            f"the learner {shown(name)} must be a class or a function with named parameters, not {shown(factory)}"
        ) from None
    common = {"gamma": "gamma", "seed": "learner_seed"}

    def make(
        options: LearnerOptions,
        training: TrainingOptions,
        defaults: LearnerDefaults,
        scale: str | None,
        own: dict[str, Any],
    ) -> Learner:
        given = {mine: getattr(options, theirs) for mine, theirs in common.items() if mine in parameters}
        taken = {"learner", *parameters, *(theirs for mine, theirs in common.items() if mine in parameters)}
        for option in (*_given(options), *_given(training)):
            if option not in taken:
                raise OptionError(f"the learner {shown(name)} has no option {option!r}")
        try:
            inspect.signature(factory).bind(**given, **own)
        except TypeError as error:
            raise OptionTypeError(f"the learner {shown(name)} needs other options: {error}") from None
        return as_learner(factory(**given, **own))

    own = tuple(name for name in parameters if name not in common)
    return LearnerRow(make, own, summary=(inspect.getdoc(factory) or "").split("\n")[0])


LEARNERS: Registry[LearnerRow] = Registry("learner", "selectenv.learners", _foreign)
for _rule in ("uds", "adapted"):
    LEARNERS.add(_rule, _tabular(_rule))
LEARNERS.add("iql", _neural(IqlLearner, rule="uds"))
LEARNERS.add("iql-adapted", _neural(IqlLearner, rule="adapted"))
LEARNERS.add("bc", _neural(CloningLearner))
LEARNERS.add("bc-greedy", _neural(CloningLearner, most_likely=True))


def register_learner(name: str) -> Callable[[F], F]:
    """Register a class or a function that returns an object with `fit(dataset, rewards) -> Policy | FitResult`.

    Its parameters become options of `make_problem` and `gym.make`; parameters called ``gamma`` and ``seed`` receive the
    options `gamma` and `learner_seed`.

    Args:
        name: the value of `learner=` that selects it.
    """

    def register(factory: F) -> F:
        LEARNERS.add(name, _foreign(name, factory))
        return factory

    return register


def make_learner(
    learner: str = "uds", *, defaults: LearnerDefaults | None = None, scale: str | None = None, **options: Any
) -> Learner:
    """Return a learner.

    Args:
        learner: its name.
        defaults: the defaults of a world; generic ones by default.
        scale: "fast" or "paper"; see `DataOptions`.
        **options: fields of `LearnerOptions` and `TrainingOptions`, and the learner's own options.

    Raises:
        UnknownNameError: there is no such learner, or no such option.
        OptionError: a value that is not allowed.
    """
    row = LEARNERS.find(learner)
    known = [name for name in names(LearnerOptions, TrainingOptions) if name != "learner"]
    own_options(options, row.parameters, known)
    own = {name: value for name, value in options.items() if name in row.parameters}
    given, training = take(LearnerOptions, {**options, "learner": learner}), take(TrainingOptions, options)
    return row.make(given, training, LearnerDefaults() if defaults is None else defaults, scale, own)


def _given(options: LearnerOptions | TrainingOptions) -> list[str]:
    """Return the names of the options that are not at their defaults."""
    return [option.name for option in fields(options) if getattr(options, option.name) != option.default]


def _check_imputation(options: LearnerOptions, imputes: bool) -> None:
    if not imputes and options.impute != 0:
        raise OptionError(f"the learner {options.learner!r} ignores unlabelled transitions: it has nothing to impute")


def _imputed(options: LearnerOptions) -> float | str:
    return options.impute if isinstance(options.impute, str) else float(options.impute)
