"""One table of worlds -> problems by name, and the ids RewardSelection-<World>-v0."""

import inspect
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import gymnasium as gym
import numpy as np

from selectenv.checks import check_int, check_name, did_you_mean
from selectenv.datasets import PUBLISHED_SIZE, OfflineDataset, cached, collect, dataset_spec, load
from selectenv.datasets.minatar_collection import SCALES, collect_play, play_spec
from selectenv.domains import tabular
from selectenv.domains.minatar.experts import load_expert
from selectenv.domains.minatar.games import MinAtarWorld
from selectenv.domains.tabular.random_worlds import KINDS, LARGEST, SMALLEST
from selectenv.domains.tabular.world import TabularWorld
from selectenv.env import ProblemSource, RewardSelectionEnv, number_of_labels
from selectenv.errors import DatasetError, OptionError, UnknownNameError, WorldError
from selectenv.evaluation.evaluator import (
    EVALUATORS,
    EnvironmentReturns,
    Evaluator,
    ExactReturns,
    GameReturns,
    ReturnEngine,
    RolloutReturns,
)
from selectenv.learners import LEARNERS, NETWORK_LEARNERS, PictureLearner, Settings, make_learner
from selectenv.problem import SelectionProblem
from selectenv.random_problems import RandomProblems

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
    evaluator: str = "exact"
    rollouts: int = 10_000
    """Episodes of the rollout evaluator."""
    labels_per_refit: float = 1
    """Labels (int), or share of the states (float), between two refits of the learner."""
    learner: str = "uds"
    updates: int = 125_000
    """Of training networks."""
    laptop_updates: int = 10_000
    """The same at the laptop's scale, with larger steps; Freeway's curve is flat after 2,000."""


World = TabularWorld | MinAtarWorld
W = TypeVar("W", bound=World)


@dataclass(frozen=True)
class WorldRow(Generic[W]):
    """A row of the table."""

    make: Callable[..., W]
    published: Published = Published()


MINATAR = Published(0.5, "all", evaluator="rollout", rollouts=50, labels_per_refit=0.02)
NETWORK = replace(MINATAR, learner="iql")
"""Games in which nearly every moment looks new: a table learns nothing there."""
REFITS = 10
"""Refits of networks in an episode, at the laptop's scale."""

TABULAR: dict[str, WorldRow[TabularWorld]] = {
    "Graph": WorldRow(tabular.graph, Published(0.7, "non-expert", 10)),
    "Tree": WorldRow(tabular.tree, Published(0.7, "non-expert", 20)),
    "TwoRooms": WorldRow(tabular.two_rooms, Published(0.5, "non-expert", 10)),
    "TwoRoomsTrap": WorldRow(tabular.two_rooms_trap, Published(0.5, "non-expert", 10)),
    "FrozenLake": WorldRow(tabular.frozen_lake, Published(0.5, "all", 20)),
    "CliffWalk": WorldRow(tabular.cliff_walk, Published(0.5, "all", 20)),
}
WORLDS: dict[str, WorldRow[Any]] = {
    **TABULAR,
    "Breakout": WorldRow(partial(MinAtarWorld, "Breakout"), MINATAR),
    "Freeway": WorldRow(partial(MinAtarWorld, "Freeway"), replace(NETWORK, updates=25_000, laptop_updates=3_000)),
    "Seaquest": WorldRow(partial(MinAtarWorld, "Seaquest"), NETWORK),
    "Asterix": WorldRow(partial(MinAtarWorld, "Asterix"), replace(NETWORK, updates=75_000)),
}


def make_problem(
    world: str | World | gym.Env[Any, Any] | None = None,
    *,
    dataset: str | os.PathLike[str] | OfflineDataset = "train",
    dataset_seed: int = 0,
    dataset_size: int | None = None,
    scale: str | None = None,
    expert_share: float | None = None,
    mixture: str | None = None,
    expert: str = "published",
    cache: bool = True,
    learner: str | None = None,
    solver: str = "exact",
    impute: float | str = 0,
    unseen: str = "zero",
    gamma: float = 0.99,
    learner_seed: int = 0,
    learner_runs: int = 1,
    passes: int | None = None,
    updates: int | None = None,
    checkpoints: str | os.PathLike[str] | None = None,
    evaluator: str | None = None,
    rollouts: int | None = None,
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
        dataset_size: number of transitions; the published 100,000 (tabular worlds) or the scale's if left out.
        scale: MinAtar: "laptop" (200,000 transitions, the default) or "paper" (1,000,000); networks are trained with
            the larger steps and fewer updates of the laptop, or as published.
        expert_share: probability of an expert action in the data; the named dataset's if left out.
        mixture: the other actions: "all" of them, or the "non-expert" ones; the world's published way if left out.
        expert: "published" or "optimal" (value iteration everywhere); MinAtar: "published" (DQN), "tabular" (Breakout),
            or an .npz file of `selectenv train-expert`.
        cache: keep collected data in the user's cache folder.
        learner: "uds" or "adapted", tables; "iql" (UDS), "iql-adapted" or "bc" (behaviour cloning), networks. The
            world's own if left out: "iql" in Freeway, Seaquest and Asterix, "uds" elsewhere.
        solver: of tables: "exact" or "sampled".
        impute: UDS: reward of unlabelled transitions, a number or "min".
        unseen: what an action never taken is worth: "zero" or "exclude".
        gamma: discount of learning.
        learner_seed: seed of the sampled learner, or of training networks.
        learner_runs: networks: training runs whose returns are averaged.
        passes: passes of the sampled learner; the world's published number if left out.
        updates: networks: updates of a training run; the scale's if left out.
        checkpoints: networks: folder to keep training runs in, so that interrupted ones go on.
        evaluator: "exact" (the default, of tabular worlds only) or "rollout".
        rollouts: episodes of the rollout evaluator; 10,000, in MinAtar 50, if left out.
        evaluation_seed: seed of the rollout evaluator.
        discount: discount of the reported return.
        **world_options: options of the named world, such as Tree's ``depth`` or FrozenLake's ``map_name``.

    Raises:
        UnknownNameError: a name that does not exist; the message says what was probably meant.
        OptionError: a value that is not allowed.
    """
    place = _find_world(world, world_options)
    published = _published(world)
    learner = published.learner if learner is None else check_name("learner", learner, LEARNERS)
    training = _training(published, learner, scale, updates, learner_runs, checkpoints)
    named = isinstance(dataset, str) and dataset in DATASETS
    collecting = (dataset_seed, dataset_size, None if training else scale, expert_share, mixture, expert)
    if not named and collecting != (0, None, None, None, None, "published"):
        raise OptionError("these data are given: options of collecting data (seed, size, mixture ...) have no effect")
    if isinstance(dataset, OfflineDataset):
        data = dataset
    elif named:
        if not isinstance(place, World):
            raise DatasetError("without a world of ours, data cannot be collected: give `dataset=`")
        spec, gather = _collection(
            place, expert, _size(place, dataset_size, scale), dataset_seed,
            _share(str(dataset), expert_share, published.expert_share),
            published.mixture if mixture is None else mixture, cache,
        )  # fmt: skip
        data = cached(spec, gather) if cache else gather()
    elif isinstance(dataset, str) and os.sep not in dataset and not dataset.endswith(".npz"):
        raise UnknownNameError(f"unknown dataset {dataset!r}; {did_you_mean(dataset, DATASETS)} A file ends in .npz.")
    elif isinstance(dataset, str | os.PathLike):
        data = load(dataset)
    else:
        raise DatasetError(f"a dataset is a name, a file or an OfflineDataset, not {dataset!r}")
    engine = _engine(
        place, data, published.evaluator if evaluator is None else evaluator,
        published.rollouts if rollouts is None else rollouts, evaluation_seed,
    )  # fmt: skip
    return SelectionProblem(
        data,
        make_learner(
            data, learner, solver=solver, impute=impute, unseen=unseen, gamma=gamma, seed=learner_seed,
            passes=published.passes if passes is None else passes, **training,
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
    labels_per_refit: float | None = None,
    occupancy: str = "normalised",
    render_mode: str | None = None,
    dataset_seed: int | None = 0,
    **options: Any,
) -> RewardSelectionEnv:
    """Make the environment of a problem: options of `RewardSelectionEnv` and of `make_problem`.

    With ``dataset_seed=None`` every reset draws fresh data. If ``labels_per_refit`` is left out it is 1 in tabular
    worlds, 0.02, a share of the states, in MinAtar, and for networks at the laptop's scale a tenth of the budget.
    """
    problem: SelectionProblem | ProblemSource
    if dataset_seed is None:
        problem = FreshData({"world": world, **options})
    else:
        problem = make_problem(world, dataset_seed=dataset_seed, **options)
    if labels_per_refit is None:
        labels_per_refit = _published(world).labels_per_refit
        if (
            isinstance(problem, SelectionProblem)
            and isinstance(problem.learner, PictureLearner)
            and options.get("scale") != "paper"
        ):
            labels_per_refit = -(-number_of_labels(budget, problem.n_states) // REFITS)
    return RewardSelectionEnv(
        problem, budget, reward_mode=reward_mode, phase=phase, initial_ratio=initial_ratio,
        labels_per_refit=labels_per_refit, occupancy=occupancy, render_mode=render_mode,
    )  # fmt: skip


make_env.metadata = RewardSelectionEnv.metadata  # type: ignore[attr-defined]  # Gymnasium checks render modes here


def make_random_env(
    *,
    budget: float | tuple[float, float] = 0.3,
    padding: int = LARGEST,
    smallest: int = SMALLEST,
    largest: int | None = None,
    kinds: tuple[str, ...] = tuple(KINDS),
    learner: str = "uds",
    **options: Any,
) -> RewardSelectionEnv:
    """Make an environment whose every episode plays in a new random world with new data.

    Args:
        budget: labels (int), share of the states that can be labelled (float), or two shares to draw between.
        padding: states of the spaces; worlds have fewer, and the rest is masked.
        smallest: states of a world at least.
        largest: states of a world at most; as many as fit if left out.
        kinds: of worlds: "tree", "layers", "grid", "sparse".
        learner: "uds" or "adapted".
        **options: of `RewardSelectionEnv`.
    """
    return RewardSelectionEnv(RandomProblems(padding, smallest, largest, tuple(kinds), learner), budget, **options)


make_random_env.metadata = RewardSelectionEnv.metadata  # type: ignore[attr-defined]


def env_id(world: str) -> str:
    """Return the Gymnasium id of a world."""
    return f"RewardSelection-{world}-v0"


def register_all() -> None:
    """Register every world of the table with Gymnasium."""
    for name in WORLDS:
        gym.register(env_id(name), entry_point="selectenv.registration:make_env", kwargs={"world": name})
    gym.register(env_id("Random"), entry_point="selectenv.registration:make_random_env")


def _published(world: Any) -> Published:
    """Return what the protocol says of a world."""
    if isinstance(world, str):
        return WORLDS[check_name("world", world, WORLDS)].published
    return WORLDS[world.name].published if isinstance(world, MinAtarWorld) else Published()


def _training(
    published: Published, learner: str, scale: str | None, updates: int | None, runs: int, checkpoints: Any
) -> dict[str, Any]:
    """Return how a network is trained; nothing for a table."""
    if learner not in NETWORK_LEARNERS:
        if (updates, runs, checkpoints) != (None, 1, None):
            raise OptionError(f"learner={learner!r} is a table: it knows no updates, learner_runs or checkpoints")
        return {}
    preset = Settings(published.laptop_updates)
    if scale is not None and check_name("scale", scale, SCALES) == "paper":
        preset = Settings(published.updates, rate=3e-4, target_step=0.005)
    if updates is not None:
        preset = replace(preset, updates=check_int("updates", updates))
    if checkpoints is not None and not isinstance(checkpoints, str | os.PathLike):
        raise OptionError(f"checkpoints must be the path of a folder, not {checkpoints!r}")
    return {"settings": preset, "runs": runs, "checkpoints": None if checkpoints is None else Path(checkpoints)}


def _size(world: World, size: int | None, scale: str | None) -> int:
    """Return how many transitions to collect."""
    if scale is not None:
        check_name("scale", scale, SCALES)
        if isinstance(world, TabularWorld) or size is not None:
            raise OptionError("scale is another way to say the dataset_size of MinAtar's data: give only one of them")
        return SCALES[scale]
    if size is not None:
        return size
    return PUBLISHED_SIZE if isinstance(world, TabularWorld) else SCALES["laptop"]


def _collection(
    world: World, expert: str, size: int, seed: int, share: float, mixture: str, cache: bool
) -> tuple[dict[str, Any], Callable[[], OfflineDataset]]:
    """Return the spec of a dataset, and how to collect it."""
    if isinstance(world, TabularWorld):
        spec = dataset_spec(world, expert_share=share, mixture=mixture, expert=expert, size=size, seed=seed)
        return spec, partial(collect, world, spec)
    player = None if share == 0 and mixture == "all" else load_expert(world, expert)  # chance needs no expert
    spec = play_spec(world, expert_share=share, mixture=mixture, expert=player, size=size, seed=seed)
    return spec, partial(collect_play, world, spec, player, to_cache=cache)


def _find_world(world: Any, options: dict[str, Any]) -> World | gym.Env[Any, Any] | None:
    """Return the world itself."""
    if isinstance(world, str):
        make = WORLDS[check_name("world", world, WORLDS)].make
        _check_options(options, make)
        named: World = make(**options)
        return named
    _check_options(options, None)
    if world is None or isinstance(world, World):
        return world
    if isinstance(world, gym.Env):
        return tabular.from_toy_text(world) if hasattr(world.unwrapped, "P") else world
    raise WorldError(
        f"a world is a name, a TabularWorld, a MinAtarWorld or a Gymnasium environment, not {type(world).__name__}"
    )


def _check_options(options: dict[str, Any], make: Callable[..., World] | None) -> None:
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
    world: World | gym.Env[Any, Any] | None, data: OfflineDataset, kind: str, rollouts: int, seed: int
) -> ReturnEngine | None:
    """Return what computes returns, if there is a world."""
    check_name("evaluator", kind, EVALUATORS)
    check_int("evaluation_seed", seed, 0)
    if world is None:
        return None
    if isinstance(world, MinAtarWorld):
        if kind == "exact":
            raise OptionError(f'{world.name} has no table of outcomes: its evaluator is "rollout"')
        return GameReturns(world, data, rollouts, seed)
    if not isinstance(world, TabularWorld):
        if kind == "exact":
            warnings.warn(
                "this environment has no table of outcomes: evaluating by rollouts", UserWarning, stacklevel=3
            )
        return EnvironmentReturns(world, data.ids, data.n_actions, rollouts, seed)
    if data.n_actions != world.n_actions or not np.array_equal(data.ids, world.ids):
        raise DatasetError(f"the dataset's states and actions are not those of the world {world.name!r}")
    return ExactReturns(world) if kind == "exact" else RolloutReturns(world, rollouts, seed)
