"""Animated pictures of episodes: what is labelled, and what the learner makes of it, label by label."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.analysis.figures import selection_panels
from selectenv.errors import MissingExtraError
from selectenv.io.progress import progress
from selectenv.problem import SelectionProblem
from selectenv.typing import IntArray

MOST_FRAMES = 40
"""Longer episodes show several labels per frame."""
FRAME_SECONDS, LAST_SECONDS = 0.9, 4.0
COLOURS = 128


def animate_episodes(problem: SelectionProblem, episodes: Mapping[str, IntArray], path: Path, title: str = "") -> None:
    """Write an animated GIF with one panel per episode and one frame per label, from none to all of them.

    The first frame shows the learned values and policy without labels; the title of a panel has the return after the
    labels of the frame.

    Args:
        problem: The selection problem.
        episodes: Name of a strategy -> when each state was labelled, 0 for never, shape [n_states].
        path: File to write.
        title: Shown above all panels.

    Raises:
        MissingExtraError: Matplotlib, which brings Pillow, is not installed.
    """
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise MissingExtraError("animations need Matplotlib and Pillow: pip install 'selectenv[plot]'") from None
    if not episodes:
        return
    labels = max(int(labelled_at.max()) for labelled_at in episodes.values())
    shown = np.unique(np.linspace(0, labels, min(labels + 1, MOST_FRAMES)).round().astype(int))
    frames = []
    for count in progress(shown.tolist(), len(shown), "frames"):
        panels = {}
        for name, labelled_at in episodes.items():
            first = np.where(labelled_at <= count, labelled_at, 0)
            panels[f"{name}: return {problem.performance(first > 0):.2f}"] = first
        frames.append(Image.fromarray(_pixels(selection_panels(problem, panels, title))))
    width, height = frames[0].size
    together = Image.new("RGB", (width, height * len(frames)))
    for i, frame in enumerate(frames):
        together.paste(frame, (0, i * height))
    together = together.quantize(COLOURS)  # one palette for all frames
    reduced = [together.crop((0, i * height, width, (i + 1) * height)) for i in range(len(frames))]
    durations = [1000 * FRAME_SECONDS] * (len(reduced) - 1) + [1000 * LAST_SECONDS]
    path.parent.mkdir(parents=True, exist_ok=True)
    reduced[0].save(path, save_all=True, append_images=reduced[1:], duration=durations, loop=0, optimize=True)


def _pixels(figure: Any) -> Any:
    """Return a figure as an RGB image [height, width, 3]."""
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[:, :, :3].copy()
