"""MinAtar worlds (Young and Tian 2019, https://arxiv.org/abs/1903.03176): games with 10 x 10 images, run in batches.

The games are those of MinAtar, with sticky actions, difficulty ramping and all six actions, as in the published
experiments; an action that a game does not use does nothing. Episodes terminate where MinAtar ends them, in Freeway
when a timer of 2,500 frames has run out. Two details are changed so that runs are reproducible and transitions are
consistent:

- a reset clears the last action, which MinAtar keeps: a sticky action cannot carry over from the previous episode;
- Seaquest's diver count stays at 0 when six divers are brought home; MinAtar sets it to -1, which looks like 0 but
  lets the submarine surface without a cost.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np

from selectenv.checks import check_flag, check_int, check_name, check_real
from selectenv.domains.world_step import WorldStep
from selectenv.errors import MissingExtraError
from selectenv.streams import Identity, generator
from selectenv.typing import BoolArray, IntArray, UintArray

ALL_ACTIONS = (0, 1, 2, 3, 4, 5)
"""MinAtar's numbers of its actions: no-op, left, up, right, down, fire."""
MINIMAL_ACTIONS = {"Breakout": (0, 1, 3), "Freeway": (0, 2, 4), "Seaquest": ALL_ACTIONS, "Asterix": (0, 1, 2, 3, 4)}
"""The actions that have an effect in each game, by MinAtar's numbers."""
ACTION_SETS = ("all", "minimal")
CHANNELS = {"Breakout": 4, "Freeway": 7, "Seaquest": 10, "Asterix": 4}
"""Channels of an image; listed here because importing MinAtar also imports plotting libraries and takes seconds."""
GAMES = tuple(MINIMAL_ACTIONS)
SIDE = 10
"""Images are SIDE x SIDE cells."""


def action_set(game: str, actions: str) -> tuple[int, ...]:
    """Return MinAtar's numbers of an action set of a game, "all" or "minimal"."""
    return ALL_ACTIONS if check_name("action set", actions, ACTION_SETS) == "all" else MINIMAL_ACTIONS[game]


@dataclass(frozen=True)
class MinAtarWorld:
    """The rules of one game; `Games` holds games in progress."""

    name: str
    actions: str = "all"
    """"all" six actions of MinAtar, or the "minimal" set: those that have an effect in the game."""
    sticky: float = 0.1
    """Probability that the previous action is repeated instead."""
    ramping: bool = True
    """Whether the difficulty increases over time."""
    horizon: int | None = None
    """Steps after which an episode is truncated; None for no limit."""
    family = "minatar"
    layout = None

    def __post_init__(self) -> None:
        """Reject unknown games and invalid options."""
        check_name("game", self.name, GAMES)
        check_real("sticky", self.sticky, "[0, 1]")
        check_name("action set", self.actions, ACTION_SETS)
        if self.horizon is not None:
            check_int("horizon", self.horizon)
        check_flag("ramping", self.ramping)

    @property
    def action_numbers(self) -> tuple[int, ...]:
        """MinAtar's numbers of the actions; action i of the world is the i-th entry."""
        return action_set(self.name, self.actions)

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return len(self.action_numbers)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of an image: rows, columns, channels."""
        return SIDE, SIDE, CHANNELS[self.name]

    @property
    def fingerprint(self) -> str:
        """A hash of everything that determines the data a policy collects here, including MinAtar's version."""
        try:
            version = metadata.version("minatar")
        except metadata.PackageNotFoundError as error:
            raise self._missing(error) from error
        text = f"minatar {version} {self.name} {float(self.sticky)} {self.ramping} {self.horizon} {self.actions}"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def new_game(self) -> Any:
        """Return a new MinAtar environment.

        Raises:
            MissingExtraError: MinAtar is not installed.
        """
        try:
            from minatar import Environment
        except ImportError as error:
            raise self._missing(error) from error
        return Environment(self.name.lower(), sticky_action_prob=self.sticky, difficulty_ramping=self.ramping)

    def _missing(self, error: Exception) -> MissingExtraError:
        return MissingExtraError(f"{self.name} needs MinAtar ({error}): pip install 'selectenv[minatar]'")


def stream_keys(count: int, seed: int, *identity: Identity) -> UintArray:
    """Return the keys [count, 4] of ``count`` random streams, derived from ``seed`` and ``identity``."""
    streams = (generator(seed, *identity, number) for number in range(check_int("games", count)))
    return np.array([stream.integers(2**64, size=4, dtype=np.uint64) for stream in streams])


class Games:
    """Many games of one world, stepped together; a game that is over restarts automatically."""

    def __init__(self, world: MinAtarWorld, keys: UintArray) -> None:
        """Start one game per row of ``keys``, which seed its randomness; see `stream_keys`."""
        self.world = world
        self._actions = world.action_numbers
        self._games = [world.new_game() for _ in keys]
        self._age = np.zeros(len(keys), np.int64)
        self.images: BoolArray = np.empty((len(keys), *world.shape), bool)
        """[games, 10, 10, channels] the current images."""
        self.begin(keys)

    def __len__(self) -> int:
        """Return the number of games."""
        return len(self._games)

    def begin(self, keys: UintArray) -> None:
        """Reseed and restart the first games, one per row of ``keys``."""
        for game, key in zip(self._games, keys, strict=False):
            game.seed(key.view(np.uint32))
        self._restart(range(len(keys)))

    def step(self, actions: IntArray, which: IntArray | None = None) -> WorldStep:
        """Take one action in each game, or in the games ``which``, and restart those whose episode is over.

        Copy the images that were entered to keep them: where no episode is over, they are the buffer `images`.
        """
        chosen = np.arange(len(self)) if which is None else which
        images, own, games = self.images, self._actions, self._games
        reward, over = np.zeros(len(chosen)), np.zeros(len(chosen), bool)
        seaquest = self.world.name == "Seaquest"
        for k, (i, action) in enumerate(zip(chosen.tolist(), actions.tolist(), strict=True)):
            game = games[i]
            reward[k], over[k] = game.act(own[action])
            if seaquest and game.env.diver_count < 0:
                game.env.diver_count = 0
            images[i] = game.env.state()
        self._age[chosen] += 1
        horizon = self.world.horizon
        truncated = np.zeros_like(over) if horizon is None else (self._age[chosen] >= horizon) & ~over
        entered = images if which is None else images[chosen]
        finished = chosen[over | truncated]
        if len(finished):
            entered = entered.copy()
            self._restart(finished.tolist())
        return WorldStep(reward, over, truncated, entered)

    def _restart(self, which: Iterable[int]) -> None:
        for i in which:
            game = self._games[i]
            game.last_action = 0
            game.reset()
            self._age[i] = 0
            self.images[i] = game.env.state()
