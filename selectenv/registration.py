"""One table of worlds -> problems by name, and the ids RewardSelection-<World>-v0."""

import inspect
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from selectenv import domains
from selectenv.checks import check_int, check_name, did_you_mean
from selectenv.datasets import PUBLISHED_SIZE, OfflineDataset, cached, collect, dataset_spec, load
from selectenv.domains.world import TabularWorld
from selectenv.env import ProblemSource, RewardSelectionEnv
from selectenv.errors import DatasetError, OptionError, UnknownNameError, WorldError
from selectenv.evaluators import EVALUATORS, EnvironmentReturns, Evaluator, ExactReturns, ReturnEngine, RolloutReturns
from selectenv.learners import make_learner
from selectenv.problem import SelectionProblem

TEST_SHARES = (0.55, 0.53, 0.51, 0.48, 0.45)
DATASETS = ("train", *(f"test-{share}" for share in TEST_SHARES))


@dataclass(frozen=True)
class Published:
    """What the published protocol says of a world's data and learner; the defaults serve worlds it does not know."""

    expert_share: float = 0.5
    """Of the training data."""
    mixture: str = "all"
    """What is done when not following the expert."""
    passes: int = 20
    """Of the sampled learner."""


@dataclass(frozen=True)
class WorldRow:
    """A row of the table."""

    make: Callable[..., TabularWorld]
    published: Published = Published()


WORLDS = {
    "Graph": WorldRow(domains.graph, Published(0.7, "non-expert", 10)),
    "Tree": WorldRow(domains.tree, Published(0.7, "non-expert", 20)),
    "TwoRooms": WorldRow(domains.two_rooms, Published(0.5, "non-expert", 10)),
    "TwoRoomsTrap": WorldRow(domains.two_rooms_trap, Published(0.5, "non-expert", 10)),
    "FrozenLake": WorldRow(domains.frozen_lake, Published(0.5, "all", 20)),
    "CliffWalk": WorldRow(domains.cliff_walk, Published(0.5, "all", 20)),
}


def make_problem(
    world: str | TabularWorld | gym.Env[Any, Any] | None = None,
    *,
    dataset: str | os.PathLike[str] | OfflineDataset = "train",
    dataset_seed: int = 0,
    dataset_size: int = PUBLISHED_SIZE,
    expert_share: float | None = None,
    mixture: str | None = None,
    expert: str = "published",
    cache: bool = True,
    learner: str = "uds",
    solver: str = "exact",
    impute: float | str = 0,
    unseen: str = "zero",
    gamma: float = 0.99,
    learner_seed: int = 0,
    passes: int | None = None,
    evaluator: str = "exact",
    rollouts: int = 10_000,
    evaluation_seed: int = 0,
    discount: float = 1.0,
    **world_options: Any,
) -> SelectionProblem:
    """Make a selection problem; the defaults are the published training data and UDS, solved exactly.

    Args:
        world: a name of `WORLDS`, a world, a Gymnasium environment with a toy-text table, or one with discrete
            observations together with a ``dataset`` of it; None with a ``dataset`` for data without a world.
        dataset: "train", "test-0.55", ... "test-0.45"; a dataset, or the file of one.
        dataset_seed: seed of the data.
        dataset_size: number of transitions.
        expert_share: probability of an expert action in the data; the named dataset's if left out.
        mixture: the other actions: "all" of them, or the "non-expert" ones; the world's published way if left out.
        expert: "published" or "optimal" (value iteration everywhere).
        cache: keep collected data in the user's cache folder.
        learner: "uds" or "adapted".
        solver: "exact" or "sampled".
        impute: UDS: reward of unlabelled transitions, a number or "min".
        unseen: what an action never taken is worth: "zero" or "exclude".
        gamma: discount of learning.
        learner_seed: seed of the sampled learner.
        passes: passes of the sampled learner; the world's published number if left out.
        evaluator: "exact" or "rollout".
        rollouts: episodes of the rollout evaluator.
        evaluation_seed: seed of the rollout evaluator.
        discount: discount of the reported return.
        **world_options: options of the named world, such as Tree's ``depth`` or FrozenLake's ``map_name``.

    Raises:
        UnknownNameError: a name that does not exist; the message says what was probably meant.
        OptionError: a value that is not allowed.
    """
    place = _find_world(world, world_options)
    published = WORLDS[world].published if isinstance(world, str) else Published()
    named = isinstance(dataset, str) and dataset in DATASETS
    collecting = (dataset_seed, dataset_size, expert_share, mixture, expert)
    if not named and collecting != (0, PUBLISHED_SIZE, None, None, "published"):
        raise OptionError("these data are given: options of collecting data (seed, size, mixture ...) have no effect")
    if isinstance(dataset, OfflineDataset):
        data = dataset
    elif named:
        if not isinstance(place, TabularWorld):
            raise DatasetError("without a tabular world, data cannot be collected: give `dataset=`")
        spec = dataset_spec(
            place, expert_share=_share(str(dataset), expert_share, published.expert_share), expert=expert,
            mixture=published.mixture if mixture is None else mixture, size=dataset_size, seed=dataset_seed,
        )  # fmt: skip
        data = cached(spec, lambda: collect(place, spec)) if cache else collect(place, spec)
    elif isinstance(dataset, str) and os.sep not in dataset and not dataset.endswith(".npz"):
        raise UnknownNameError(f"unknown dataset {dataset!r}; {did_you_mean(dataset, DATASETS)} A file ends in .npz.")
    elif isinstance(dataset, str | os.PathLike):
        data = load(dataset)
    else:
        raise DatasetError(f"a dataset is a name, a file or an OfflineDataset, not {dataset!r}")
    engine = _engine(place, data, evaluator, rollouts, evaluation_seed)
    return SelectionProblem(
        data,
        make_learner(
            data, learner, solver=solver, impute=impute, unseen=unseen, gamma=gamma, seed=learner_seed,
            passes=published.passes if passes is None else passes,
        ),
        Evaluator(engine, discount),
        place.layout if isinstance(place, TabularWorld) else None,
    )  # fmt: skip


@dataclass(frozen=True)
class FreshData:
    """A problem source: the same world, new data at every call."""

    options: dict[str, Any]

    def __call__(self, rng: np.random.Generator) -> SelectionProblem:
        """Return a problem on data with a seed drawn from ``rng``."""
        return make_problem(**{**self.options, "dataset_seed": int(rng.integers(1, 2**63)), "cache": False})


def make_env(
    world: Any = None,
    *,
    budget: float = 0.3,
    reward_mode: str = "final",
    phase: str = "train",
    initial_ratio: float = 0.0,
    labels_per_refit: float = 1,
    occupancy: str = "normalised",
    render_mode: str | None = None,
    dataset_seed: int | None = 0,
    **options: Any,
) -> RewardSelectionEnv:
    """Make the environment of a problem: options of `RewardSelectionEnv` and of `make_problem`.

    With ``dataset_seed=None`` every reset draws fresh data.
    """
    problem: SelectionProblem | ProblemSource
    if dataset_seed is None:
        problem = FreshData({"world": world, **options})
    else:
        problem = make_problem(world, dataset_seed=dataset_seed, **options)
    return RewardSelectionEnv(
        problem, budget, reward_mode=reward_mode, phase=phase, initial_ratio=initial_ratio,
        labels_per_refit=labels_per_refit, occupancy=occupancy, render_mode=render_mode,
    )  # fmt: skip


make_env.metadata = RewardSelectionEnv.metadata  # type: ignore[attr-defined]  # Gymnasium checks render modes here


def env_id(world: str) -> str:
    """Return the Gymnasium id of a world."""
    return f"RewardSelection-{world}-v0"


def register_all() -> None:
    """Register every world of the table with Gymnasium."""
    for name in WORLDS:
        gym.register(env_id(name), entry_point="selectenv.registration:make_env", kwargs={"world": name})


def _find_world(world: Any, options: dict[str, Any]) -> TabularWorld | gym.Env[Any, Any] | None:
    """Return the world itself."""
    if isinstance(world, str):
        if world not in WORLDS:
            raise UnknownNameError(f"unknown world {world!r}; {did_you_mean(world, WORLDS)}")
        make = WORLDS[world].make
        _check_options(options, make)
        return make(**options)
    _check_options(options, None)
    if world is None or isinstance(world, TabularWorld):
        return world
    if isinstance(world, gym.Env):
        return domains.from_toy_text(world) if hasattr(world.unwrapped, "P") else world
    raise WorldError(f"a world is a name, a TabularWorld or a Gymnasium environment, not {type(world).__name__}")


def _check_options(options: dict[str, Any], make: Callable[..., TabularWorld] | None) -> None:
    """Raise for options that neither the problem nor the world has."""
    own = set(inspect.signature(make).parameters) if make else set()
    for name in options:
        if name not in own:
            common = (set(inspect.signature(make_problem).parameters) | set(inspect.signature(make_env).parameters)) - {
                "world", "world_options", "options",
            }  # fmt: skip
            raise UnknownNameError(f"unknown option {name!r}; {did_you_mean(name, sorted(common | own))}")


def _share(dataset: str, given: float | None, published: float) -> float:
    """Return the expert share of a named dataset, unless another one is asked for."""
    if dataset == "train":
        return published if given is None else given
    if given is not None:
        raise OptionError(f"dataset={dataset!r} fixes the expert share: leave out expert_share, or the dataset's name")
    return float(dataset.removeprefix("test-"))


def _engine(
    world: TabularWorld | gym.Env[Any, Any] | None, data: OfflineDataset, kind: str, rollouts: int, seed: int
) -> ReturnEngine | None:
    """Return what computes returns, if there is a world."""
    check_name("evaluator", kind, EVALUATORS)
    check_int("evaluation_seed", seed, 0)
    if world is None:
        return None
    if not isinstance(world, TabularWorld):
        if kind == "exact":
            warnings.warn(
                "this environment has no table of outcomes: evaluating by rollouts", UserWarning, stacklevel=3
            )
        return EnvironmentReturns(world, data.ids, data.n_actions, rollouts, seed)
    if data.n_actions != world.n_actions or not np.array_equal(data.ids, world.ids):
        raise DatasetError(f"the dataset's states and actions are not those of the world {world.name!r}")
    return ExactReturns(world) if kind == "exact" else RolloutReturns(world, rollouts, seed)
