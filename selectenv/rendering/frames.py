"""Rendering of image states: one colour, or one letter, per channel."""

import numpy as np

from selectenv.problem import SelectionProblem
from selectenv.typing import BoolArray, ByteArray, IntArray

SHOWN = 24
"""Number of labelled images that are drawn, in the order of labelling."""
IN_TEXT = 6
"""The same for text."""
COLUMNS = 8
PALETTE = np.array(
    [
        (18, 18, 24),
        (86, 180, 233),
        (240, 228, 66),
        (213, 94, 0),
        (0, 158, 115),
        (204, 121, 167),
        (230, 159, 0),
        (0, 114, 178),
        (238, 238, 238),
        (148, 103, 189),
        (140, 86, 75),
    ],
    np.uint8,
)
LETTERS = np.array(list(".ABCDEFGHIJ"))


def layers(images: BoolArray) -> IntArray:
    """Return the visible channel of each cell [..., rows, columns]: the first that is set, counted from 1; 0 for none.

    MinAtar's first channels are the player and moving objects, the last ones the background.
    """
    shown: IntArray = np.where(images.any(axis=-1), images.argmax(axis=-1) + 1, 0)
    return shown


def colours(images: BoolArray) -> ByteArray:
    """Return images [..., rows, columns, channels] as RGB [..., rows, columns, 3]."""
    return PALETTE[layers(images)]


def first_labelled(labelled_at: IntArray, count: int) -> IntArray:
    """Return the numbers of the first ``count`` labelled states, in the order of labelling."""
    chosen = np.flatnonzero(labelled_at)
    return chosen[np.argsort(labelled_at[chosen])][:count]


def mosaic(problem: SelectionProblem, states: IntArray, columns: int = COLUMNS) -> ByteArray:
    """Return the images of ``states``, arranged row by row, as one RGB image [height, width, 3]."""
    assert problem.dataset.images is not None
    images = colours(problem.dataset.images[states])
    rows, side = max(1, -(-len(states) // columns)), images.shape[1] + 1
    sheet = np.full((rows * side - 1, columns * side - 1, 3), 255, np.uint8)
    for i, image in enumerate(images):
        top, left = i // columns * side, i % columns * side
        sheet[top : top + side - 1, left : left + side - 1] = image
    return sheet


def text(problem: SelectionProblem, labelled_at: IntArray, budget: int) -> str:
    """Return the first labelled images side by side, with one letter per channel."""
    assert problem.dataset.images is not None
    states = first_labelled(labelled_at, IN_TEXT)
    spent = int((labelled_at > 0).sum())
    lines = [f"{spent} of {problem.n_states} states labelled, budget {budget}" + (", the first ones:" if spent else "")]
    shown = [["".join(row) for row in LETTERS[layers(image)]] for image in problem.dataset.images[states]]
    lines += ["  ".join(row) for row in zip(*shown, strict=True)]
    return "\n".join(lines) + "\n"
