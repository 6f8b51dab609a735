"""The worlds by name, their published defaults, and how worlds of each family are collected from and evaluated in."""

import inspect
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np

from selectenv.checks import (
    check_instance,
    check_int,
    check_name,
    check_path,
    check_real,
    did_you_mean,
    is_int,
    shown,
)
from selectenv.datasets import gym_collection, minatar_collection, tabular_collection
from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.grouping import group_states
from selectenv.datasets.storage import cached, load
from selectenv.domains import tabular
from selectenv.domains.base import NoWorld, World
from selectenv.domains.gym_env import PREFIX, GymWorld
from selectenv.domains.gym_experts import UNKNOWN_EXPERT
from selectenv.domains.minatar.games import MinAtarWorld
from selectenv.domains.tabular.discrete_env import DiscreteEnvWorld
from selectenv.domains.tabular.world import TabularWorld
from selectenv.errors import DatasetError, NoTableWarning, OptionError, OptionTypeError, UnknownNameError, WorldError
from selectenv.evaluation import EnvironmentReturns, ExactReturns, GameReturns, ReturnEngine, RolloutReturns
from selectenv.evaluation.grouped_returns import GroupedReturns
from selectenv.evaluation.vector_returns import VectorReturns
from selectenv.extensions import Registry
from selectenv.learners.registry import LearnerDefaults, Preset
from selectenv.options import (
    DATASETS,
    EPISODE,
    EVALUATORS,
    LARGEST_SIZE,
    MAXIMUM,
    MIXTURES,
    DataOptions,
    EvaluationOptions,
    check_share,
)

M = TypeVar("M", bound=Callable[..., Any])


@dataclass(frozen=True)
class WorldDefaults:
    """Defaults of a world, as in the published protocol; the values below serve all other worlds."""

    expert_share: float | tuple[float, float] = 0.5
    """Share of expert actions in the training data; control worlds: or a pair between which every episode draws it."""
    mixture: str = "all"
    """How the other actions are drawn."""
    evaluator: str = "exact"
    rollouts: int = 10_000
    """Episodes of the rollout evaluator."""
    transitions_per_state: int = 0
    """Tabular worlds: smallest number of transitions per state of data whose size is not given."""
    labels_per_refit: float = 1
    """Labels (int), or share of the states (float), between two refits of the learner."""
    groups: int | None = None
    """Number of clusters of vectors that labels cover; None for states."""
    learner: str = "uds"
    learning: LearnerDefaults = field(default_factory=LearnerDefaults)

    def __post_init__(self) -> None:
        """Check the values."""
        check_share(self.expert_share)
        check_name("mixture", self.mixture, MIXTURES)
        check_name("evaluator", self.evaluator, EVALUATORS)
        check_int("rollouts", self.rollouts, 1, LARGEST_SIZE)
        check_int("transitions_per_state", self.transitions_per_state, 0, LARGEST_SIZE)
        check_real("labels_per_refit", self.labels_per_refit, "(0, inf)")
        if self.groups is not None:
            check_int("groups", self.groups)
        check_instance("learner", self.learner, str)
        check_instance("learning", self.learning, LearnerDefaults)


@dataclass(frozen=True)
class WorldRow:
    """A row of the table of worlds."""

    make: Callable[..., Any]
    """Makes the world from its own options."""
    defaults: WorldDefaults = WorldDefaults()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the world's own options."""
        found = inspect.signature(self.make).parameters.values()
        return tuple(parameter.name for parameter in found if parameter.kind is not parameter.VAR_KEYWORD)


Engine = Callable[[Any, OfflineDataset, int, int], ReturnEngine]
"""World, data, number of episodes, seed -> engine."""


@dataclass(frozen=True)
class WorldFamily:
    """How data are collected from worlds of one family, and how policies are evaluated in them."""

    collection: tabular_collection.Collect | None
    """World and resolved options -> what to collect; None if data must be given."""
    size: Callable[[DataOptions, LearnerDefaults], int]
    """Number of transitions to collect."""
    engines: Mapping[str, Engine]
    """The engines by the option `evaluator`; none if performance cannot be computed."""


def _table_engine(make: Callable[[TabularWorld, int, int], ReturnEngine]) -> Engine:
    def engine(world: TabularWorld, data: OfflineDataset, episodes: int, seed: int) -> ReturnEngine:
        if data.n_actions != world.n_actions or not np.array_equal(data.base.ids, world.ids):
            raise DatasetError(f"the dataset's states and actions are not those of the world {world.name!r}")
        engine = make(world, episodes, seed)
        cell = np.arange(world.n_states) if data.groups is None else data.groups.cell
        same = np.array_equal(cell, np.arange(data.cells.n_states))
        return engine if same else GroupedReturns(engine, cell.astype(np.int32), data.cells.n_states)

    return engine


def _no_exact_engine(world: World, data: OfflineDataset, episodes: int, seed: int) -> ReturnEngine:
    raise OptionError(f'{world.name} has no table of outcomes: its evaluator is "rollout"')


def _environment_engine(world: DiscreteEnvWorld, data: OfflineDataset, episodes: int, seed: int) -> ReturnEngine:
    return EnvironmentReturns(world, data.ids, data.n_actions, episodes, seed)


def _environment_instead(world: DiscreteEnvWorld, data: OfflineDataset, episodes: int, seed: int) -> ReturnEngine:
    warnings.warn("this environment has no table of outcomes: evaluating by rollouts", NoTableWarning, stacklevel=4)
    return _environment_engine(world, data, episodes, seed)


def _published_size(options: DataOptions, learning: LearnerDefaults) -> int:
    return tabular_collection.size(options)


def _size_at_scale(options: DataOptions, learning: LearnerDefaults) -> int:
    return minatar_collection.size(options, learning.preset(options.scale).transitions)


FAMILIES: dict[str, WorldFamily] = {
    "tabular": WorldFamily(
        tabular_collection.collection,
        _published_size,
        {
            "exact": _table_engine(lambda world, episodes, seed: ExactReturns(world)),
            "rollout": _table_engine(RolloutReturns),
        },
    ),
    "minatar": WorldFamily(
        minatar_collection.collection, _size_at_scale, {"exact": _no_exact_engine, "rollout": GameReturns}
    ),
    "environment": WorldFamily(None, _published_size, {"exact": _environment_instead, "rollout": _environment_engine}),
    "gym": WorldFamily(
        gym_collection.collection, _published_size, {"exact": _no_exact_engine, "rollout": VectorReturns}
    ),
    "none": WorldFamily(None, _published_size, {}),
}
"""Families by name; `World.family` is the key."""


def row_of(name: str, make: Any, defaults: WorldDefaults = WorldDefaults()) -> WorldRow:
    """Return the row of a function that makes a world.

    Raises:
        OptionTypeError: it is not a function whose parameters can be given by name.
    """
    try:
        named = callable(make) and all(
            parameter.kind is not parameter.POSITIONAL_ONLY for parameter in inspect.signature(make).parameters.values()
        )
    except Exception:  # a built-in function without a signature, or a broken __repr__
        named = False
    if not named:
        raise OptionTypeError(
            f"the world {shown(name)} must be a function that returns a world and has named parameters, not "
            f"{shown(make)}"
        )
    return WorldRow(make, defaults)


GAME_DEFAULTS = WorldDefaults(evaluator="rollout", rollouts=50, labels_per_refit=0.02)
TABULAR: dict[str, WorldRow] = {
    name: WorldRow(make, WorldDefaults(share, mixture, learning=LearnerDefaults(passes)))
    for name, make, share, mixture, passes in (
        ("Graph", tabular.graph, 0.7, "non-expert", 10),
        ("Tree", tabular.tree, 0.7, "non-expert", 20),
        ("TwoRooms", tabular.two_rooms, 0.5, "non-expert", 10),
        ("TwoRoomsTrap", tabular.two_rooms_trap, 0.5, "non-expert", 10),
        ("FrozenLake", tabular.frozen_lake, 0.5, "all", 20),
        ("CliffWalk", tabular.cliff_walk, 0.5, "all", 20),
    )
}
"""The six tabular worlds of the paper."""
SCALING: dict[str, WorldRow] = {"Sparse": WorldRow(tabular.sparse, WorldDefaults(transitions_per_state=20))}
"""Worlds of any size, in which the cost of large worlds is measured."""
GAMES: dict[str, WorldRow] = {
    name: WorldRow(
        partial(MinAtarWorld, name),
        replace(
            GAME_DEFAULTS,
            learner=learner,
            learning=LearnerDefaults(
                expectile=expectile, paper=Preset(1_000_000, updates, 3e-4), fast=Preset(1_000_000, fewer, 3e-4)
            ),
        ),
    )
    for name, learner, expectile, updates, fewer in (
        # The learner, the expectile of exact tables, and the number of updates of networks: as published, and the
        # smallest with 80 % of the return. A table learns nothing where nearly every state is visited once.
        ("Breakout", "uds", 0.7, 125_000, 100_000),
        ("Freeway", "iql", MAXIMUM, 25_000, 10_000),
        ("Seaquest", "iql", MAXIMUM, 125_000, 80_000),
        ("Asterix", "iql", MAXIMUM, 75_000, 40_000),
    )
}
"""The four MinAtar games of the paper."""
CONTROL_NETWORKS = Preset(100_000, 40_000, 1e-3, target_step=0.02, decay=True)
"""At both scales; with the games' target step of 0.005 values are not yet carried back along an episode of Acrobot."""
CONTROL_DEFAULTS = WorldDefaults(
    evaluator="rollout",
    rollouts=50,
    groups=200,
    learning=LearnerDefaults(paper=CONTROL_NETWORKS, fast=CONTROL_NETWORKS),
)
LANDER_NETWORKS = replace(CONTROL_NETWORKS, updates=80_000, target_step=0.002, expectile=0.9)
LANDER_DEFAULTS = replace(
    CONTROL_DEFAULTS, expert_share=(0.0, 1.0), learning=LearnerDefaults(paper=LANDER_NETWORKS, fast=LANDER_NETWORKS)
)
"""If half of all actions are random, no episode ends with a landing; with a share per episode, every fifth one does."""
CONTROL: dict[str, WorldRow] = {
    name: WorldRow(partial(GymWorld, env), defaults)
    for name, env, defaults in (
        ("CartPole", "CartPole-v1", CONTROL_DEFAULTS),
        ("Acrobot", "Acrobot-v1", CONTROL_DEFAULTS),
        ("MountainCar", "MountainCar-v0", CONTROL_DEFAULTS),
        ("LunarLander", "LunarLander-v3", LANDER_DEFAULTS),
    )
}
"""Control worlds with vector observations, of Gymnasium."""
WORLDS: Registry[WorldRow] = Registry("world", "selectenv.worlds", row_of)
for _name, _row in {**TABULAR, **SCALING, **GAMES, **CONTROL}.items():
    WORLDS.add(_name, _row)


RANDOM = "Random"
"""The name in the id of the environment that draws a new world in every episode."""


def find_row(world: Any) -> WorldRow:
    """Return the row of a world given by name, or of one of the games; other worlds have generic defaults."""
    if isinstance(world, str) and world == RANDOM and world not in WORLDS:
        raise UnknownNameError(
            f'{RANDOM} is not one world but a new one in every episode: use gym.make("RewardSelection-{RANDOM}-v0")'
        )
    if isinstance(world, str) and world.startswith(PREFIX):
        return WorldRow(partial(GymWorld, world.removeprefix(PREFIX)), CONTROL_DEFAULTS)
    if isinstance(world, str):
        return WORLDS.find(world)
    if isinstance(world, GymWorld) or (isinstance(world, gym.Env) and _has_vectors(world)):
        return WorldRow(lambda: world, CONTROL_DEFAULTS)
    if isinstance(world, MinAtarWorld):
        return GAMES[world.name]
    return WorldRow(lambda: world)


def own_parameters(world: Any) -> tuple[str, ...]:
    """Return the names of a named world's own options; a world that is given as an object has none."""
    return find_row(world).parameters if isinstance(world, str) else ()


def find_world(world: Any, own: Mapping[str, Any]) -> World:
    """Return a world as an object.

    Args:
        world: a name, a world, a Gymnasium environment, or None.
        own: options of the named world.

    Raises:
        WorldError: it is something else.
    """
    named = f" (returned by {world!r})" if isinstance(world, str) else ""
    if isinstance(world, str):
        row = find_row(world)
        try:
            inspect.signature(row.make).bind(**own)
        except TypeError as error:
            raise OptionTypeError(f"the world {world!r} needs other options: {error}") from None
        world = row.make(**own)
    if world is None:
        return NoWorld()
    if isinstance(world, gym.Env):
        if _has_vectors(world):
            return GymWorld(world)
        return tabular.from_toy_text(world) if hasattr(world.unwrapped, "P") else DiscreteEnvWorld(world)
    if not isinstance(getattr(world, "family", None), str) or world.family not in FAMILIES or isinstance(world, type):
        raise WorldError(
            "a world is a name, a TabularWorld, a MinAtarWorld, a GymWorld or a Gymnasium environment, not "
            f"{type(world).__name__}{named}"
        )
    found: World = world
    return found


def _has_vectors(env: gym.Env[Any, Any]) -> bool:
    return isinstance(env.observation_space, gym.spaces.Box)


def find_data(world: World, options: DataOptions, defaults: WorldDefaults) -> OfflineDataset:
    """Return the dataset that the options ask for: given, loaded from a file, or collected from the world.

    Raises:
        DatasetError: it is not a dataset, or the world cannot be collected from.
        OptionError: options for collecting data are combined with given data.
    """
    data, family = options.dataset, FAMILIES[world.family]
    if not options.is_named:
        if options.collects:
            raise OptionError(
                "the data are given: options for collecting data (dataset_seed, mixture, ...) have no effect"
            )
        found = data if isinstance(data, OfflineDataset) else load(_dataset_path(data))
        usual = defaults.groups if found.vectors is not None else None
        return _in_groups(found, usual if options.groups is None else options.groups)
    if family.collection is None:
        raise DatasetError("data cannot be collected from this world: pass `dataset=`")
    size = family.size(options, defaults.learning)
    if options.dataset_size is None and isinstance(world, TabularWorld):
        size = max(size, defaults.transitions_per_state * world.n_states)
    resolved = replace(
        options,
        dataset_size=size,
        expert_share=_expert_share(options, defaults),
        mixture=defaults.mixture if options.mixture is None else options.mixture,
    )
    spec, gather = family.collection(world, resolved)
    groups = defaults.groups if options.groups is None else options.groups
    identified = spec.get("expert") != UNKNOWN_EXPERT and (not isinstance(world, GymWorld) or world.cacheable)
    if not options.cache or not identified:
        return _in_groups(gather(), groups)
    if is_int(groups) or (
        isinstance(groups, str) and groups == EPISODE
    ):  # clustering takes seconds, so grouped data are cached as well
        return cached({**spec, "groups": groups}, lambda: _in_groups(cached(spec, gather), groups))
    return _in_groups(cached(spec, gather), groups)


def _in_groups(dataset: OfflineDataset, groups: Any) -> OfflineDataset:
    """Return a dataset over groups of its states, or the dataset itself if nothing is said about groups."""
    return dataset if groups is None else group_states(dataset, groups)


def find_engine(
    world: World, data: OfflineDataset, options: EvaluationOptions, defaults: WorldDefaults
) -> ReturnEngine | None:
    """Return the engine that computes returns, or None if there is no world."""
    engines = FAMILIES[world.family].engines
    kind = defaults.evaluator if options.evaluator is None else options.evaluator
    rollouts = defaults.rollouts if options.rollouts is None else options.rollouts
    return engines[kind](world, data, rollouts, options.evaluation_seed) if engines else None


def _expert_share(options: DataOptions, defaults: WorldDefaults) -> float | tuple[float, float]:
    """Return the expert share of a named dataset, unless another one is asked for."""
    if options.dataset == "train":
        return defaults.expert_share if options.expert_share is None else options.expert_share
    if options.expert_share is not None:
        raise OptionError(
            f"dataset={options.dataset!r} fixes the expert share: leave out expert_share, or the dataset's name"
        )
    return float(options.dataset.removeprefix("test-"))


def _dataset_path(data: Any) -> str | os.PathLike[str]:
    """Return the path of a dataset file.

    Raises:
        UnknownNameError: a name that is neither a named dataset nor a file.
        DatasetError: something else than a path.
    """
    if isinstance(data, str) and os.sep not in data and not data.endswith(".npz"):
        raise UnknownNameError(f"unknown dataset {shown(data)}; {did_you_mean(data, DATASETS)} A file ends in .npz.")
    if not isinstance(data, str | os.PathLike):
        raise DatasetError(f"a dataset is a name, a file or an OfflineDataset, not {shown(data)}")
    return check_path("dataset", data)
