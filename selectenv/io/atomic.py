"""Atomic writing of files."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from selectenv.checks import check_path
from selectenv.errors import FileError, SelectEnvError


def make_directory(name: str, path: str | os.PathLike[str]) -> Path:
    """Return the directory ``path``, after making sure that files can be written to it.

    Args:
        name: what is written there, for the error message.
        path: the directory; it is created if it does not exist.

    Raises:
        FileError: files cannot be written to it.
    """
    directory = check_path(name, path)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise FileError(f"{name} cannot be written to {os.fspath(directory)!r}: {error}") from None
    return directory


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing; it replaces ``path`` once it is complete, and is removed after an error.

    Raises:
        FileError: the file cannot be written.
    """
    target = check_path("path", path)
    try:
        if target.is_dir():
            raise IsADirectoryError("it is a directory")
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".partial")
    except OSError as error:
        raise FileError(f"{os.fspath(target)!r} cannot be written: {error}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(partial, 0o644)
        os.replace(partial, target)
    except BaseException as error:
        Path(partial).unlink(missing_ok=True)
        if isinstance(error, OSError) and not isinstance(error, SelectEnvError):
            raise FileError(f"{os.fspath(target)!r} cannot be written: {error}") from error
        raise
