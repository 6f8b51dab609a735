"""Collection of datasets from a MinAtar game with a mixture of its expert and random actions."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from selectenv.checks import check_int, check_name, check_real
from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.images import Images, deduplicate
from selectenv.datasets.storage import cache_folder
from selectenv.domains.minatar.experts import Expert, load_expert
from selectenv.domains.minatar.games import Games, MinAtarWorld, stream_keys
from selectenv.domains.world_step import WorldStep
from selectenv.errors import DatasetError, OptionError
from selectenv.io.resources import require_disk, require_memory
from selectenv.kernels.network.packed_images import find_rows, pack
from selectenv.options import MIXTURES, DataOptions
from selectenv.streams import generator
from selectenv.typing import BoolArray, Int32Array, IntArray, UintArray

GAMES_AT_ONCE = 128


def size(options: DataOptions, usual: int) -> int:
    """Return the number of transitions to collect; ``usual`` is that of the game at the scale of the options.

    Raises:
        OptionError: both a scale and a size are given.
    """
    if options.scale is not None and options.dataset_size is not None:
        raise OptionError("scale sets the dataset_size of MinAtar's data: give only one of them")
    return usual if options.dataset_size is None else options.dataset_size


def collection(world: MinAtarWorld, options: DataOptions) -> tuple[dict[str, Any], Callable[[], OfflineDataset]]:
    """Return the spec of the dataset described by resolved options, and the function that collects it."""
    assert options.dataset_size is not None
    assert options.mixture is not None
    random_only = options.one_share == 0 and options.mixture == "all"  # needs no expert
    expert = None if random_only else load_expert(world, options.expert)
    spec = play_spec(
        world,
        expert_share=options.one_share,
        mixture=options.mixture,
        expert=expert,
        size=options.dataset_size,
        seed=options.dataset_seed,
    )
    return spec, partial(collect_play, world, spec, expert, to_cache=options.cache)


def play_spec(
    world: MinAtarWorld, *, expert_share: float, mixture: str, expert: Expert | None, size: int, seed: int
) -> dict[str, Any]:
    """Return everything that determines a dataset, ready for JSON; the expert is optional if it is never followed."""
    check_int("dataset_size", size, error=DatasetError)
    check_int("dataset_seed", seed, 0)
    check_real("expert_share", expert_share, "[0, 1]")
    check_name("mixture", mixture, MIXTURES)
    if expert is None and (expert_share > 0 or mixture != "all"):
        raise OptionError(f"an expert share of {expert_share} and the mixture {mixture!r} need an expert")
    return {
        "world": world.name,
        "world_fingerprint": world.fingerprint,
        "expert_share": float(expert_share),
        "mixture": mixture,
        "expert": "none" if expert is None else expert.fingerprint,
        "size": int(size),
        "seed": int(seed),
        "games": GAMES_AT_ONCE,
    }


def collect_play(
    world: MinAtarWorld, spec: dict[str, Any], expert: Expert | None, *, to_cache: bool = False
) -> OfflineDataset:
    """Collect the dataset of a `play_spec` with its expert: the same spec gives the same data.

    Raises:
        ResourceError: there is too little memory or disk space; raised before anything is collected.
    """
    require_room(world, spec["size"], to_cache=to_cache)
    identity = [value for key, value in spec.items() if key not in ("world", "seed")]
    rng = generator(spec["seed"], "mixture", *identity)
    count = min(GAMES_AT_ONCE, spec["size"])
    games = Games(world, stream_keys(count, spec["seed"], "dataset", *identity))
    record = _Record(world, count, -(-spec["size"] // count))
    for step in range(record.steps):
        action = _mixed_actions(games, expert, spec["expert_share"], spec["mixture"], rng)
        record.before(step, games, action)
        record.after(step, games.step(action))
    return record.dataset(games, spec)


def require_room(world: MinAtarWorld, size: int, *, to_cache: bool) -> None:
    """Raise `ResourceError` unless ``size`` transitions fit in memory and, with ``to_cache``, on disk."""
    bits = int(np.prod(world.shape))
    image, columns, sorting = 8 * -(-bits // 64), 23, 64
    what = f"collecting {size:,} transitions of {world.name}"
    require_memory(size * (2 * image + columns + sorting), what)
    if to_cache:
        require_disk(size * (image + columns), cache_folder(), what)


def _mixed_actions(
    games: Games, expert: Expert | None, share: float, mixture: str, rng: np.random.Generator
) -> IntArray:
    """Draw the next action of each game: the expert's, or a random action ("all" or "non-expert")."""
    count, n_actions = len(games), games.world.n_actions
    follow, other = rng.random(count) < share, rng.integers(n_actions, size=count)
    skip = rng.integers(n_actions - 1, size=count)
    if expert is None:
        return other
    asked = np.flatnonzero(follow) if mixture == "all" else np.arange(count)
    action = other
    if len(asked):
        advised = expert.actions(games.images[asked])
        if mixture == "non-expert":
            advised = np.where(follow, advised, skip + (skip >= advised))
        action[asked] = advised
    return action


class _Record:
    """The transitions of many games: columns of shape [games, steps]."""

    def __init__(self, world: MinAtarWorld, count: int, steps: int) -> None:
        self.steps = steps
        shape = count, steps
        self._images: UintArray = np.empty((*shape, -(-int(np.prod(world.shape)) // 64)), np.uint64)
        self._action = np.empty(shape, np.int32)
        self._reward = np.empty(shape)
        self._terminated, self._truncated = np.zeros(shape, bool), np.zeros(shape, bool)
        self._final: dict[int, UintArray] = {}
        """Flat index of a truncated transition -> its next image, which no later transition contains."""

    def before(self, step: int, games: Games, action: IntArray) -> None:
        """Record the images and the actions."""
        self._images[:, step], self._action[:, step] = pack(games.images), action

    def after(self, step: int, result: WorldStep) -> None:
        """Record the outcomes, with the final images of truncated episodes."""
        self._reward[:, step], self._terminated[:, step], self._truncated[:, step] = result[:3]
        self._record_truncation(step, result.truncated, result.entered)

    def _record_truncation(self, step: int, truncated: BoolArray, images: BoolArray) -> None:
        for game in np.flatnonzero(truncated).tolist():
            self._final[game * self.steps + step] = pack(images[game : game + 1])[0]

    def dataset(self, games: Games, spec: dict[str, Any]) -> OfflineDataset:
        """Return the transitions; episodes in progress are truncated."""
        size, world = spec["size"], games.world
        left = ~(self._terminated[:, -1] | self._truncated[:, -1])
        self._record_truncation(self.steps - 1, left, games.images)
        self._truncated[left, -1] = True
        action, reward = self._action.ravel()[:size], self._reward.ravel()[:size]
        terminated, truncated = self._terminated.ravel()[:size], self._truncated.ravel()[:size]
        truncated[-1] = not terminated[-1]  # the last game may be shortened to the requested size
        words = self._images.reshape(-1, self._images.shape[2])[:size]
        ids, state, known, salt = deduplicate(words)
        following: Int32Array = np.append(state[1:], np.int32(-1))
        at = [index for index in self._final if index < size]
        if at:
            images = np.stack([self._final[index] for index in at])
            following[at] = find_rows(images, np.uint64(salt), ids, known)
        following[terminated] = -1
        return OfflineDataset(
            ids=ids,
            n_actions=world.n_actions,
            state=state,
            action=action,
            next_state=following,
            terminated=terminated,
            truncated=truncated,
            episode_start=np.concatenate([[True], (terminated | truncated)[:-1]]),
            hidden_reward=reward,
            spec=spec,
            observations=Images(known, world.shape, salt),
        )
