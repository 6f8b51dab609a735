"""TensorBoardMonitor: logs the episodes of any agent to TensorBoard."""

import os
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from selectenv.checks import check_int, check_path
from selectenv.errors import ClosedError, FileError
from selectenv.io.event_log import EventLog, log_directory, require_tensorboard
from selectenv.observation import Observation
from selectenv.typing import BoolArray
from selectenv.wrappers.batch_labels import selection_env

MOST_FOLDERS = 10_000


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
    """

    def __init__(self, env: gym.Env[Any, Any], logdir: str | os.PathLike[str], *, detail_every: int = 100) -> None:
        """Monitor ``env``.

        Args:
            env: a reward-selection environment, wrapped or not.
            logdir: TensorBoard log directory.
            detail_every: log the first episode, and then every ``detail_every``-th, in detail.

        Raises:
            MissingExtraError: TensorBoard is not installed.
        """
        self._selection = selection_env(env)
        folder, self._every = check_path("logdir", logdir), check_int("detail_every", detail_every)
        RecordConstructorArgs.__init__(self, logdir=os.fspath(folder), detail_every=self._every)
        gym.Wrapper.__init__(self, env)
        require_tensorboard()
        self.folder = _own_folder(folder)
        """Directory that this environment writes to."""
        self._log = EventLog(self.folder)
        self._episode = 0
        self._cost = self._selection.calls.cost
        self._curve: EventLog | None = None
        self._closed = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        self._check_open()
        result = self.env.reset(seed=seed, options=options)
        self._episode += 1
        self._wasted = 0
        self._end_curve()
        if (self._episode - 1) % self._every == 0:
            self._curve = EventLog(self.folder / f"episode-{self._episode:06d}")
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, and log its results."""
        self._check_open()
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._wasted += int(info.get("wasted", 0))
        if self._curve is not None and not self._selection.problem.evaluator.locked:
            self._curve.scalars(self._selection.labels_spent, self._metrics("by_labels"))
        if terminated or truncated:
            self._finish()
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        """Close the files, then the environment."""
        self._end_curve()
        self._log.close()
        self._closed = True
        self.env.close()

    def action_masks(self) -> BoolArray:
        """Return the mask of states that can still be labelled."""
        masks: BoolArray = self.env.get_wrapper_attr("action_masks")()
        return masks

    def _metrics(self, group: str) -> dict[str, float]:
        """Return performance and regret to full labels of the current labels; empty if the problem has no evaluator."""
        if not self._selection.problem.has_performance:
            return {}
        problem = self._selection.problem
        value = problem.score(self._selection.labelled_at > 0)
        regret = problem.score(problem.dataset.labelable) - value
        return {f"{group}/performance": value, f"{group}/regret_to_full_labels": regret}

    def _finish(self) -> None:
        env = self._selection
        metrics = self._metrics("episode")
        metrics |= {
            "episode/cost": env.calls.cost - self._cost,
            "episode/wasted": self._wasted,
            "episode/labels": len(env.labels),
        }
        self._cost = env.calls.cost
        self._log.scalars(self._episode, metrics)
        self._log.histogram(self._episode, "states", env.labels)
        if self._curve is not None:
            from selectenv.rendering.selection import draw_figure

            self._log.image(self._episode, "selection", draw_figure(env.problem, env.labelled_at, env.budget))
        self._end_curve()
        self._log.flush()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("the monitor is closed: its files cannot be written any more; wrap the environment again")

    def _end_curve(self) -> None:
        if self._curve is not None:
            self._curve.close()
            self._curve = None


def _own_folder(logdir: Path) -> Path:
    """Create and return the first unused directory env-0, env-1, ...; no two environments share one."""
    log_directory("logdir", logdir)
    taken = [int(path.name[4:]) for path in logdir.glob("env-*") if path.name[4:].isdigit()]
    for number in range(int(np.max(taken, initial=-1)) + 1, MOST_FOLDERS):
        try:
            (logdir / f"env-{number}").mkdir()
        except FileExistsError:
            continue
        return logdir / f"env-{number}"
    raise FileError(f"{logdir} already has {MOST_FOLDERS} directories of environments")
