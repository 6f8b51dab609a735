"""EpisodeLog: the episodes of one environment, or of a vector of them, as event files of TensorBoard."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from selectenv.checks import check_int, check_path
from selectenv.errors import ClosedError, FileError
from selectenv.io.event_log import EventLog, log_directory, require_tensorboard
from selectenv.problem import SelectionProblem
from selectenv.typing import IntArray

MOST_FOLDERS = 10_000


@dataclass(eq=False)
class LoggedEpisode:
    """A running episode."""

    number: int
    """Its number, counted from 1."""
    curve: EventLog | None
    """Where its performance by number of labels is written, if it is logged in detail."""
    problem: SelectionProblem
    """Evaluations are counted there, but not as a cost."""
    labelled_at: IntArray
    """[n] when each state was labelled; 0 if it is not labelled."""
    budget: int
    spent: int
    """Number of labels spent so far."""
    wasted: int = 0
    """Number of these that were wasted."""

    def metrics(self, group: str) -> dict[str, float]:
        """Return performance and regret to full labels so far; empty if the problem has no evaluator."""
        problem = self.problem
        if not problem.has_performance:
            return {}
        value = problem.score(self.labelled_at > 0)
        regret = problem.score(problem.dataset.labelable) - value
        return {f"{group}/performance": value, f"{group}/regret_to_full_labels": regret}


class EpisodeLog:
    """Writes to a directory of its own; `TensorBoardMonitor` lists what it writes."""

    def __init__(self, logdir: str | os.PathLike[str], detail_every: int) -> None:
        """Write to the first unused directory ``logdir``/env-0, ``logdir``/env-1, ...

        Raises:
            MissingExtraError: TensorBoard is not installed.
        """
        self.logdir, self.detail_every = check_path("logdir", logdir), check_int("detail_every", detail_every)
        require_tensorboard()
        self.folder = _own_folder(self.logdir)
        self._log, self._begun, self.closed = EventLog(self.folder), 0, False

    def begin(self, problem: SelectionProblem, labelled_at: IntArray, budget: int, spent: int) -> LoggedEpisode:
        """Begin the next episode; see `LoggedEpisode`."""
        self._begun += 1
        detailed = (self._begun - 1) % self.detail_every == 0
        curve = EventLog(self.folder / f"episode-{self._begun:06d}") if detailed else None
        return LoggedEpisode(self._begun, curve, problem, labelled_at, budget, spent)

    def add_step(self, episode: LoggedEpisode, wasted: int, *, hidden: bool) -> None:
        """Write the results of a step, unless they are still hidden.

        Args:
            episode: the episode, up to date.
            wasted: number of labels that the step wasted.
            hidden: whether the evaluator is locked.
        """
        episode.wasted += wasted
        if episode.curve is not None and not hidden:
            episode.curve.scalars(episode.spent, episode.metrics("by_labels"))

    def finish(self, episode: LoggedEpisode, cost: int) -> None:
        """Write the results of an episode, and the number of performances disclosed since the last one."""
        labels = np.flatnonzero(episode.labelled_at)
        metrics = episode.metrics("episode")
        metrics |= {"episode/cost": cost, "episode/wasted": episode.wasted, "episode/labels": len(labels)}
        self._log.scalars(episode.number, metrics)
        self._log.histogram(episode.number, "states", labels)
        if episode.curve is not None:
            from selectenv.rendering.selection import draw_figure

            drawn = draw_figure(episode.problem, episode.labelled_at, episode.budget)
            self._log.image(episode.number, "selection", drawn)
        self.drop(episode)
        self._log.flush()

    def drop(self, episode: LoggedEpisode | None) -> None:
        """Close the files of an episode, if there is one, that ends here, finished or not."""
        if episode is not None and episode.curve is not None:
            episode.curve.close()
            episode.curve = None

    def close(self) -> None:
        """Close the file of all episodes."""
        self._log.close()
        self.closed = True

    def check_open(self) -> None:
        """Raise unless more can be written.

        Raises:
            ClosedError: it was closed.
        """
        if self.closed:
            raise ClosedError("the monitor is closed: its files cannot be written any more; wrap the environment again")


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
