"""MinAtar worlds (Young and Tian 2019, https://arxiv.org/abs/1903.03176): games of 10 x 10 images, many at once.

The games are MinAtar's own, with its sticky actions, difficulty ramping and the actions that matter in a game. What
would make two runs differ, or data mean something else than it says, is put right here:

- a reset forgets the last action, which MinAtar keeps: a sticky action cannot reach over from the episode before;
- an episode is cut after 5,000 steps; MinAtar knows no time limit;
- Freeway's end after 2,500 frames is a cut too: nothing that the player sees has ended;
- Seaquest's count of divers stays at 0 when six are brought home; MinAtar would make it -1, which looks like 0 but
  lets the player surface for free.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np

from selectenv.checks import check_flag, check_int, check_name, check_real
from selectenv.errors import MissingExtraError
from selectenv.streams import Identity, generator
from selectenv.typing import BoolArray, FloatArray, IntArray, UintArray

ACTIONS = {"Breakout": (0, 1, 3), "Freeway": (0, 2, 4), "Seaquest": (0, 1, 2, 3, 4, 5), "Asterix": (0, 1, 2, 3, 4)}
"""MinAtar's own numbers of the actions that matter in a game; ours are their places here."""
CHANNELS = {"Breakout": 4, "Freeway": 7, "Seaquest": 10, "Asterix": 4}
"""Layers of a image; said here because importing MinAtar, which brings plotting libraries along, takes seconds."""
GAMES = tuple(ACTIONS)
SIDE = 10
"""Images are SIDE x SIDE cells."""
TIME_LIMIT = 5_000
ENDS_BY_THE_CLOCK = ("Freeway",)


@dataclass(frozen=True)
class MinAtarWorld:
    """One of the games: how it is played, not a game in progress."""

    name: str
    sticky: float = 0.1
    """Probability that the action before is repeated instead."""
    ramping: bool = True
    """Whether the game grows harder with time."""
    horizon: int = TIME_LIMIT
    """Steps after which an episode is truncated."""
    family = "minatar"
    layout = None

    def __post_init__(self) -> None:
        """Reject names that are not games."""
        check_name("game", self.name, GAMES)
        check_real("sticky", self.sticky, "[0, 1]")
        check_int("horizon", self.horizon)
        check_flag("ramping", self.ramping)

    @property
    def n_actions(self) -> int:
        """Number of actions that matter."""
        return len(ACTIONS[self.name])

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of a image: rows, columns, channels."""
        return SIDE, SIDE, CHANNELS[self.name]

    @property
    def fingerprint(self) -> str:
        """A hash of everything that shapes the data a policy collects here, MinAtar's version too."""
        try:
            version = metadata.version("minatar")
        except metadata.PackageNotFoundError as error:
            raise self._missing(error) from error
        text = f"minatar {version} {self.name} {float(self.sticky)} {self.ramping} {self.horizon}"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def new_game(self) -> Any:
        """Return a game of MinAtar's own kind.

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


class Moves(NamedTuple):
    """What one step of many games brought."""

    reward: FloatArray
    """[games]"""
    terminated: BoolArray
    """[games] whether the episode ended by itself."""
    truncated: BoolArray
    """[games] whether it was cut."""
    entered: BoolArray
    """[games, 10, 10, channels] the images entered; where an episode is over, those of its last moment. Copy them to
    keep them: where no episode ended, they are the games' own."""


def stream_keys(count: int, seed: int, *identity: Identity) -> UintArray:
    """Return the keys [count, 4] of as many random streams, which follow from ``seed`` and ``identity``."""
    streams = (generator(seed, *identity, number) for number in range(check_int("games", count)))
    return np.array([stream.integers(2**64, size=4, dtype=np.uint64) for stream in streams])


class Games:
    """Many games of one world side by side; one that is over starts anew, and `images` shows all of them."""

    def __init__(self, world: MinAtarWorld, keys: UintArray) -> None:
        """Start a game for each of ``keys``, which decide all that is left to chance in it; see `stream_keys`."""
        self.world = world
        self._actions = ACTIONS[world.name]
        self._games = [world.new_game() for _ in keys]
        self._age = np.zeros(len(keys), np.int64)
        self.images: BoolArray = np.empty((len(keys), *world.shape), bool)
        """[games, 10, 10, channels] what the players see now."""
        self.begin(keys)

    def __len__(self) -> int:
        """Return the number of games."""
        return len(self._games)

    def begin(self, keys: UintArray) -> None:
        """Start the first games anew, one for each of ``keys``."""
        for game, key in zip(self._games, keys, strict=False):
            game.seed(key.view(np.uint32))
        self._restart(range(len(keys)))

    def step(self, actions: IntArray, which: IntArray | None = None) -> Moves:
        """Take one action in each game, or in those at ``which``, and restart those whose episode is over."""
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
        late = self._age[chosen] >= self.world.horizon
        cut = over | late if self.world.name in ENDS_BY_THE_CLOCK else late & ~over
        entered = images if which is None else images[chosen]
        finished = chosen[over | late]
        if len(finished):
            entered = entered.copy()
            self._restart(finished.tolist())
        return Moves(reward, over & ~cut, cut, entered)

    def _restart(self, which: Iterable[int]) -> None:
        for i in which:
            game = self._games[i]
            game.last_action = 0
            game.reset()
            self._age[i] = 0
            self.images[i] = game.env.state()
