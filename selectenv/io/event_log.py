"""TensorBoard event files: scalars, histograms and images, without torch."""

import io
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from selectenv.checks import check_path, shown
from selectenv.errors import FileError, MissingExtraError
from selectenv.io.atomic import make_directory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 50


def log_directory(name: str, path: str | os.PathLike[str]) -> Path:
    """Create and return a log directory.

    Raises:
        FileError: TensorBoard cannot write there, because the path has characters that are not valid in UTF-8.
    """
    folder = check_path(name, path)
    try:
        os.fspath(folder).encode()
    except UnicodeEncodeError:
        raise FileError(f"{name}={shown(os.fspath(path))} is not valid UTF-8, which TensorBoard needs") from None
    return make_directory(name, folder)


def require_tensorboard() -> None:
    """Raise `MissingExtraError` unless event files can be written."""
    _tensorboard()


def _tensorboard() -> tuple[Any, ...]:
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ModuleNotFoundError:
        raise MissingExtraError("logging needs TensorBoard: pip install 'selectenv[meta]'") from None
    return Event, Summary, HistogramProto, EventFileWriter


class EventLog:
    """Writes one run of TensorBoard."""

    def __init__(self, folder: Path) -> None:
        """Write to the directory ``folder``.

        Raises:
            MissingExtraError: TensorBoard is not installed.
        """
        self._event, self._summary, self._histogram, writer = _tensorboard()
        self._writer: Any = writer(str(folder))

    def scalars(self, step: int, metrics: dict[str, float]) -> None:
        """Write metrics by tag."""
        self._add(step, [self._summary.Value(tag=tag, simple_value=float(value)) for tag, value in metrics.items()])

    def histogram(self, step: int, tag: str, values: ArrayLike) -> None:
        """Write a histogram of values of any shape; nothing if there are none."""
        found = np.asarray(values, np.float64).ravel()
        if len(found) == 0:
            return
        counts, limits = np.histogram(found, BINS)
        spread = self._histogram(
            min=found.min(),
            max=found.max(),
            num=len(found),
            sum=found.sum(),
            sum_squares=(found**2).sum(),
            bucket_limit=limits[1:].tolist(),
            bucket=counts.tolist(),
        )
        self._add(step, [self._summary.Value(tag=tag, histo=spread)])

    def image(self, step: int, tag: str, figure: "Figure") -> None:
        """Write a Matplotlib figure as an image."""
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png")
        width, height = (int(inches * figure.dpi) for inches in figure.get_size_inches())
        encoded = self._summary.Image(height=height, width=width, colorspace=3, encoded_image_string=buffer.getvalue())
        self._add(step, [self._summary.Value(tag=tag, image=encoded)])

    def flush(self) -> None:
        """Write buffered events to the file."""
        self._writer.flush()

    def close(self) -> None:
        """Write buffered events and close the file."""
        self._writer.close()

    def _add(self, step: int, values: list[Any]) -> None:
        self._writer.add_event(self._event(wall_time=time.time(), step=step, summary=self._summary(value=values)))
