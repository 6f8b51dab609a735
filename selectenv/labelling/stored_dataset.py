"""The dataset of a session: inside its file, or in a file beside it where it is large."""

import io
import tempfile
import zipfile
from pathlib import Path

from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.storage import load, save
from selectenv.errors import DatasetFileError, SessionError, SessionFileError

EMBEDDED_BYTES = 1 << 26
"""Datasets with more bytes than this are written to a file of their own."""


def pack(dataset: OfflineDataset) -> bytes:
    """Return a dataset file with compressed arrays, as bytes."""
    packed = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        path = save(dataset, Path(folder) / "dataset.npz")
        with zipfile.ZipFile(path) as plain, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as small:
            for name in plain.namelist():
                small.writestr(name, plain.read(name))
    return packed.getvalue()


def unpack(content: bytes, path: Path) -> OfflineDataset:
    """Return the dataset of `pack`.

    Raises:
        SessionFileError: it is damaged; ``path``, the file of the session, is named.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "dataset.npz"
        file.write_bytes(content)
        try:
            return load(file)  # arrays that are compressed are read, not mapped, so the file can be removed
        except DatasetFileError:
            raise SessionFileError(f"{str(path)!r} is damaged: its dataset cannot be read") from None


def is_large(dataset: OfflineDataset) -> bool:
    """Return whether a dataset is kept outside of the file of its session."""
    return sum(array.nbytes for array in dataset.arrays().values()) > EMBEDDED_BYTES


def path_beside(path: Path, fingerprint: str) -> Path:
    """Return the file of a dataset that is too large for the file ``path`` of its session.

    Its name contains the beginning of the fingerprint: a session of other data that is made at the same time does not
    replace it.
    """
    return path.with_name(f"{path.name}.{fingerprint[:8]}.dataset.npz")


def load_beside(path: Path, fingerprint: str) -> OfflineDataset:
    """Return the dataset that is kept beside the file ``path`` of its session.

    Raises:
        SessionError: it is missing, damaged, or another one.
    """
    beside = path_beside(path, fingerprint)
    try:
        dataset = load(beside)
    except DatasetFileError as error:
        raise SessionError(f"the session {str(path)!r} keeps its dataset in {str(beside)!r}: {error}") from None
    if dataset.fingerprint != fingerprint:
        raise SessionError(f"{str(beside)!r} holds another dataset than the session {str(path)!r} was made with")
    return dataset
