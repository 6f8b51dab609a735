"""TensorBoardMonitor: any agent's episodes, watched in TensorBoard."""

import os
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from selectenv.checks import check_int, check_path
from selectenv.errors import FileError
from selectenv.io.event_log import EventLog, require_tensorboard
from selectenv.observation import Observation
from selectenv.typing import BoolArray
from selectenv.wrappers.batch_labels import selection_env

MOST_FOLDERS = 10_000


class TensorBoardMonitor(gym.Wrapper[Observation, Any, Observation, Any], RecordConstructorArgs):
    """Logs every episode, and some of them in detail.

    Against the number of the episode: `episode/performance`, `episode/gap` (what labelling everything would earn more),
    `episode/evaluator_calls` (since the episode before, so a search is counted with the episode that follows it),
    `episode/wasted` and `episode/labels`, and a histogram of the `states` labelled. Every
    so many episodes also, against the labels made, `by_labels/performance` and `by_labels/gap`, in a run of their own,
    and the `selection` as a picture. Looks of the monitor are no evaluator calls.

    Each environment writes to a folder of its own, ``logdir``/env-0 and so on, so many of them can share a ``logdir``:
    under Stable-Baselines3's vectorised environments, in one process or in several.
    """

    def __init__(self, env: gym.Env[Any, Any], logdir: str | os.PathLike[str], *, detail_every: int = 100) -> None:
        """Watch ``env``.

        Args:
            env: plays reward selection, wrapped or not.
            logdir: folder of TensorBoard.
            detail_every: look closely at the first episode and then at each of so many.

        Raises:
            MissingExtraError: TensorBoard is not installed.
        """
        self._selection = selection_env(env)
        folder = check_path("logdir", logdir)
        RecordConstructorArgs.__init__(self, logdir=os.fspath(folder), detail_every=detail_every)
        gym.Wrapper.__init__(self, env)
        self._every = check_int("detail_every", detail_every)
        require_tensorboard()
        self.folder = _own_folder(folder)
        """Where this environment writes."""
        self._log = EventLog(self.folder)
        self._episode = 0
        self._asked = self._selection.calls.asked
        self._curve: EventLog | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode."""
        result = self.env.reset(seed=seed, options=options)
        self._episode += 1
        self._wasted = 0
        self._end_curve()
        if (self._episode - 1) % self._every == 0:
            self._curve = EventLog(self.folder / f"episode-{self._episode:06d}")
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Make a step, and log what it led to."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._wasted += int(info.get("wasted", 0))
        if self._curve is not None and not self._selection.problem.evaluator.locked:
            self._curve.scalars(self._selection.labels_spent, self._figures("by_labels"))
        if terminated or truncated:
            self._finish()
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        """Close the files, then the environment."""
        self._end_curve()
        self._log.close()
        self.env.close()

    def action_masks(self) -> BoolArray:
        """Return which states can still be labelled usefully."""
        masks: BoolArray = self.env.get_wrapper_attr("action_masks")()
        return masks

    def _figures(self, group: str) -> dict[str, float]:
        """Return performance and gap of the labels so far; nothing where there is nothing to measure with."""
        if not self._selection.problem.has_performance:
            return {}
        problem = self._selection.problem.with_calls()  # evaluations by the monitor are not counted
        value = problem.score(self._selection.labelled_at > 0)
        return {f"{group}/performance": value, f"{group}/gap": problem.score(problem.dataset.labelable) - value}

    def _finish(self) -> None:
        env = self._selection
        figures = self._figures("episode")
        figures |= {
            "episode/evaluator_calls": env.calls.asked - self._asked,
            "episode/wasted": self._wasted,
            "episode/labels": len(env.labels),
        }
        self._asked = env.calls.asked
        self._log.scalars(self._episode, figures)
        self._log.histogram(self._episode, "states", env.labels)
        if self._curve is not None:
            from selectenv.rendering.selection import draw_figure

            self._log.picture(self._episode, "selection", draw_figure(env.problem, env.labelled_at, env.budget))
        self._end_curve()
        self._log.flush()

    def _end_curve(self) -> None:
        if self._curve is not None:
            self._curve.close()
            self._curve = None


def _own_folder(logdir: Path) -> Path:
    """Make the first folder env-0, env-1, ... that is not there; no two environments get the same one."""
    try:
        logdir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{os.fspath(logdir)!r} is no directory that can be written to: {error}") from None
    taken = [int(path.name[4:]) for path in logdir.glob("env-*") if path.name[4:].isdigit()]
    for number in range(int(np.max(taken, initial=-1)) + 1, MOST_FOLDERS):
        try:
            (logdir / f"env-{number}").mkdir()
        except FileExistsError:
            continue
        return logdir / f"env-{number}"
    raise FileError(f"{logdir} has {MOST_FOLDERS} folders of environments already")
