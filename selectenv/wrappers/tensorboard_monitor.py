"""TensorBoardMonitor: logs the episodes of any agent to TensorBoard."""

import os
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from selectenv.checks import shown
from selectenv.errors import OptionTypeError
from selectenv.observation import Observation
from selectenv.typing import BoolArray
from selectenv.vector_env import RewardSelectionVectorEnv
from selectenv.wrappers.batch_labels import selection_env
from selectenv.wrappers.episode_log import EpisodeLog, LoggedEpisode


class TensorBoardMonitor(gym.Wrapper[Observation, Any, Observation, Any], RecordConstructorArgs):
    """Wrapper that logs every episode to TensorBoard, and some episodes in detail.

    By episode number: `episode/performance`, `episode/regret_to_full_labels` (the performance with all states labelled,
    minus that of the episode), `episode/cost` (performances disclosed to the strategy since the previous episode, so
    that a search counts towards the episode that follows it), `episode/wasted`, `episode/labels`, and a histogram of
    the labelled `states`. Every ``detail_every`` episodes also, by number of labels and as a separate run,
    `by_labels/performance` and `by_labels/regret_to_full_labels`, and the `selection` as an image. What the monitor
    evaluates is not a cost of the strategy.

    Each environment writes to its own directory, ``logdir``/env-0, ``logdir``/env-1, ..., so that several environments
    can share a ``logdir``, for example in the vectorised environments of Stable-Baselines3, in one process or several.
    A `RewardSelectionVectorEnv` writes to one directory: its episodes are numbered in the order in which they begin.
    """

    def __new__(cls, env: Any, logdir: str | os.PathLike[str], *, detail_every: int = 100) -> Any:
        """Return the wrapper for single or for vector environments."""
        if isinstance(env, gym.vector.VectorEnv):
            return VectorMonitor(env, logdir, detail_every=detail_every)
        return super().__new__(cls)

    def __init__(self, env: Any, logdir: str | os.PathLike[str], *, detail_every: int = 100) -> None:
        """Monitor ``env``.

        Args:
            env: a reward-selection environment or a vector of them, wrapped or not.
            logdir: TensorBoard log directory.
            detail_every: log the first episode, and then every ``detail_every``-th, in detail.

        Raises:
            MissingExtraError: TensorBoard is not installed.
        """
        self._selection = selection_env(env)
        self._log = EpisodeLog(logdir, detail_every)
        RecordConstructorArgs.__init__(self, logdir=os.fspath(self._log.logdir), detail_every=self._log.detail_every)
        gym.Wrapper.__init__(self, env)
        self.folder = self._log.folder
        """Directory that this environment writes to."""
        self._cost = self._selection.calls.cost
        self._episode: LoggedEpisode | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        self._log.check_open()
        result = self.env.reset(seed=seed, options=options)
        self._log.drop(self._episode)
        inner = self._selection
        self._episode = self._log.begin(inner.problem, inner.labelled_at, inner.budget, inner.labels_spent)
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, and log its results."""
        self._log.check_open()
        result = self.env.step(action)
        episode, inner = self._episode, self._selection
        if episode is not None:
            episode.spent = inner.labels_spent
            self._log.add_step(episode, int(result[4].get("wasted", 0)), hidden=inner.problem.evaluator.locked)
            if result[2] or result[3]:
                cost = inner.calls.cost - self._cost
                self._cost += cost
                self._log.finish(episode, cost)
        return result

    def close(self) -> None:
        """Close the files, then the environment."""
        self._log.drop(self._episode)
        self._log.close()
        self.env.close()

    def action_masks(self) -> BoolArray:
        """Return the mask of states that can still be labelled."""
        masks: BoolArray = self.env.get_wrapper_attr("action_masks")()
        return masks


class VectorMonitor(gym.vector.VectorWrapper[Any, Any, Any, Any, Any]):
    """The wrapper of vector environments: `TensorBoardMonitor` makes it."""

    def __init__(
        self, env: gym.vector.VectorEnv[Any, Any, Any], logdir: str | os.PathLike[str], *, detail_every: int = 100
    ) -> None:
        """Monitor ``env``; see `TensorBoardMonitor`."""
        super().__init__(env)
        if not isinstance(env.unwrapped, RewardSelectionVectorEnv):
            raise OptionTypeError(
                f"env must be a vector environment of reward selection, as gym.make_vec makes it, not {shown(env)}: "
                "monitor the environments inside of other vectors one by one"
            )
        self._inner: RewardSelectionVectorEnv = env.unwrapped
        self._log = EpisodeLog(logdir, detail_every)
        self.folder = self._log.folder
        self._episodes: dict[int, LoggedEpisode] = {}
        self._costs = [calls.cost for calls in self._inner.calls]

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start episodes."""
        self._log.check_open()
        result = self.env.reset(seed=seed, options=options)
        self._begin(result[1])
        return result

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Label a state in every environment, and log the results."""
        self._log.check_open()
        result = self.env.step(actions)
        info = result[4]
        for found in (info, info.get("final_info", {})):
            for number in np.flatnonzero(found.get("_wasted", ())).tolist():
                self._label(number, int(actions[number]), wasted=bool(found["wasted"][number]))
        for number in np.flatnonzero(result[2]).tolist():
            cost = self._inner.calls[number].cost - self._costs[number]
            self._costs[number] += cost
            self._log.finish(self._episodes[number], cost)
        self._begin(info)
        return result

    def close(self, **options: Any) -> None:
        """Close the files, then the environments."""
        for episode in self._episodes.values():
            self._log.drop(episode)
        self._log.close()
        self.env.close(**options)

    def action_masks(self) -> BoolArray:
        """Return the masks [environments, n] of states that can still be labelled."""
        return self._inner.action_masks()

    def _begin(self, info: dict[str, Any]) -> None:
        """Begin the episodes of the environments that were reset, as an info says."""
        inner = self._inner
        for number in np.flatnonzero(info.get("_budget", ())).tolist():
            self._log.drop(self._episodes.get(number))
            problem = inner.problem_of(number).with_calls(inner.calls[number])
            problem.evaluator.locked = False  # the next episode may have begun when this one is logged
            initial = info["initial"][number]
            labelled_at = np.zeros(problem.n_states, np.int64)
            labelled_at[initial] = 1 + np.arange(len(initial))
            self._episodes[number] = self._log.begin(problem, labelled_at, int(info["budget"][number]), len(initial))

    def _label(self, number: int, action: int, *, wasted: bool) -> None:
        """Add a label to the episode of an environment."""
        episode = self._episodes[number]
        episode.spent += 1
        if not wasted:
            episode.labelled_at[action] = episode.spent
        hidden = self._inner.options.phase == "test" and episode.spent < episode.budget
        self._log.add_step(episode, int(wasted), hidden=hidden)
