"""make_problem and make_env: problems and environments from flat keywords."""

import inspect
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from selectenv.budget import number_of_labels
from selectenv.env import RewardSelectionEnv
from selectenv.errors import OptionError
from selectenv.evaluation.evaluator import Evaluator
from selectenv.learners.registry import LEARNERS
from selectenv.options import (
    GROUPS,
    DataOptions,
    EnvironmentOptions,
    EvaluationOptions,
    LearnerOptions,
    TrainingOptions,
    names,
    own_options,
    take,
)
from selectenv.problem import SelectionProblem
from selectenv.random_problems import RandomProblems
from selectenv.vector_env import RewardSelectionVectorEnv
from selectenv.worlds import find_data, find_engine, find_row, find_world, own_parameters

PROBLEM_GROUPS = (DataOptions, LearnerOptions, TrainingOptions, EvaluationOptions)


def make_problem(world: Any = None, **options: Any) -> SelectionProblem:
    """Make a selection problem; the defaults are the published training data and UDS, solved exactly.

    Args:
        world: a name of `WORLDS`, a world, a Gymnasium environment with a toy-text table, or one with discrete
            observations together with a ``dataset`` of it; None with a ``dataset`` for data without a world.
        **options: fields of `DataOptions`, `LearnerOptions`, `TrainingOptions` and `EvaluationOptions`, and options of
            the named world, such as Tree's ``depth``, FrozenLake's ``map_name`` or a game's ``actions``, or of a
            registered learner.

    Raises:
        UnknownNameError: a name or an option that does not exist; the message says what was probably meant.
        OptionError: a value that is not allowed.
    """
    row = find_row(world)
    data, learning, evaluation = (
        take(DataOptions, options),
        take(LearnerOptions, options),
        take(EvaluationOptions, options),
    )
    training = take(TrainingOptions, options)
    name = row.defaults.learner if learning.learner is None else learning.learner
    learner = LEARNERS.find(name)
    own = own_options(options, [*own_parameters(world), *learner.parameters], names(*PROBLEM_GROUPS))
    if data.scale is not None and not data.is_named and not learner.uses_scale:
        raise OptionError("the data are given: scale has no effect")
    place = find_world(world, {key: value for key, value in own.items() if key in own_parameters(world)})
    dataset = find_data(place, data, row.defaults)
    learner.check(dataset)
    learning = LearnerOptions(**{**vars(learning), "learner": name})
    takes = {*own, *names(LearnerOptions, TrainingOptions)} & {*learner.parameters}
    theirs = {key: value for key, value in options.items() if key in takes}
    drawn = dataset.groups is None or np.array_equal(dataset.groups.cell, np.arange(dataset.n_states))
    return SelectionProblem(
        dataset,
        learner.make(learning, training, row.defaults.learning, data.scale, theirs),
        Evaluator(find_engine(place, dataset, evaluation, row.defaults), evaluation.discount),
        place.layout if drawn else None,
    )


@dataclass(frozen=True)
class FreshData:
    """A problem source: the same world with new data at every call."""

    options: dict[str, Any]

    def __call__(self, rng: np.random.Generator) -> SelectionProblem:
        """Return a problem on data with a seed drawn from ``rng``."""
        return make_problem(**{**self.options, "dataset_seed": int(rng.integers(1, 2**63)), "cache": False})


def make_env(world: Any = None, *, dataset_seed: int | None = 0, **options: Any) -> RewardSelectionEnv:
    """Make the environment of a problem.

    Args:
        world: see `make_problem`.
        dataset_seed: seed of the data; with None every reset draws fresh data.
        **options: the options of `make_problem` and the fields of `EnvironmentOptions`.
    """
    _check_single_options(options)
    problem, environment = _parts(world, dataset_seed, options)
    return RewardSelectionEnv(problem, **environment)


def make_vector_env(
    world: Any = None,
    *,
    num_envs: int = 1,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    dataset_seed: int | None = 0,
    **options: Any,
) -> RewardSelectionVectorEnv:
    """Make many environments of a problem at once: the same as `make_env`, in one compiled pass per step.

    Args:
        world: see `make_problem`.
        num_envs: number of environments.
        autoreset_mode: see `RewardSelectionVectorEnv`.
        dataset_seed: seed of the data; with None every reset draws fresh data for each environment.
        **options: the options of `make_problem` and the fields of `EnvironmentOptions`.
    """
    _check_vector_options(options)
    problem, environment = _parts(world, dataset_seed, options, ("autoreset_mode", "num_envs"))
    return RewardSelectionVectorEnv(problem, num_envs, autoreset_mode=autoreset_mode, **environment)


def _check_vector_options(options: dict[str, Any]) -> None:
    """Reject keywords of `gym.make_vec` that concern Gymnasium's own vectors."""
    for name in ("max_episode_steps", "wrappers", "vector_kwargs"):
        if name in options:
            raise OptionError(f"{name} is not for native vectors, whose episodes end with the budget: leave it out")


def _check_single_options(options: dict[str, Any]) -> None:
    """Reject options of vectors."""
    if "autoreset_mode" in options:
        raise OptionError(
            "autoreset_mode is an option of vectors: use vectorization_mode='vector_entry_point', or "
            "vector_kwargs={'autoreset_mode': ...} with 'sync'"
        )


def _parts(
    world: Any, dataset_seed: int | None, options: dict[str, Any], more: tuple[str, ...] = ()
) -> tuple[Any, dict[str, Any]]:
    """Return the problem of an environment, or its source, and the options of the environment.

    ``more`` names options that the caller has taken out, for the error about unknown ones.
    """
    row = find_row(world)
    own_options(options, _allowed(world, options), (*names(*GROUPS), *more))
    environment = {key: value for key, value in options.items() if key in names(EnvironmentOptions)}
    rest = {key: value for key, value in options.items() if key not in environment}
    refit_given = environment.get("labels_per_refit") is not None
    if not refit_given:
        environment["labels_per_refit"] = row.defaults.labels_per_refit
    if dataset_seed is None:
        return FreshData({"world": world, **rest}), environment
    problem = make_problem(world, dataset_seed=dataset_seed, **rest)
    refits = LEARNERS.find(options.get("learner") or row.defaults.learner).fast_refits
    if not refit_given and refits is not None and options.get("scale") != "paper":
        labels = number_of_labels(environment.get("budget", EnvironmentOptions.budget), problem.n_states)
        environment["labels_per_refit"] = -(-labels // refits)
    return problem, environment


def make_random_env(*, budget: Any = 0.3, **options: Any) -> RewardSelectionEnv:
    """Make an environment in which every episode is played in a new random world with new data.

    Args:
        budget: labels (int), share of the states that can be labelled (float), or a (low, high) pair of shares.
        **options: fields of `RandomProblems` and of `EnvironmentOptions`.
    """
    _check_single_options(options)
    own = own_options(options, names(RandomProblems), names(EnvironmentOptions))
    environment = {key: value for key, value in options.items() if key not in own}
    return RewardSelectionEnv(RandomProblems(**own), budget, **environment)


def make_random_vector_env(
    *,
    num_envs: int = 1,
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    budget: Any = 0.3,
    **options: Any,
) -> RewardSelectionVectorEnv:
    """Make many environments of random worlds at once; see `make_random_env` and `make_vector_env`."""
    _check_vector_options(options)
    own = own_options(options, names(RandomProblems), (*names(EnvironmentOptions), "autoreset_mode", "num_envs"))
    environment = {key: value for key, value in options.items() if key not in own}
    problems = RandomProblems(**own)
    return RewardSelectionVectorEnv(problems, num_envs, budget, autoreset_mode=autoreset_mode, **environment)


def _allowed(world: Any, options: dict[str, Any]) -> list[str]:
    """Return the options that the world and the learner have on their own."""
    learner = options.get("learner") or find_row(world).defaults.learner
    return [*own_parameters(world), *LEARNERS.find(learner).parameters]


def _document(function: Any, first: str, groups: tuple[type, ...]) -> None:
    """Give a function the signature and the documentation of its option groups."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = [
        inspect.Parameter(option.name, keyword, default=option.default, annotation=option.type)
        for group in groups
        for option in fields(group)
    ]
    parameters = [inspect.Parameter(first, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None), *options]
    more = inspect.Parameter("own_options", inspect.Parameter.VAR_KEYWORD)
    function.__signature__ = inspect.Signature([*parameters, more])
    listed = "\n".join(inspect.cleandoc(group.__doc__ or "") for group in groups)
    function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n{listed}\n"


_document(make_problem, "world", PROBLEM_GROUPS)
_document(make_env, "world", GROUPS)
make_env.metadata = RewardSelectionEnv.metadata  # type: ignore[attr-defined]  # Gymnasium checks render modes here
make_random_env.metadata = RewardSelectionEnv.metadata  # type: ignore[attr-defined]
