"""Datasets on disk: one .npz file with its spec, seed and content hash, checked on load; and the user's cache."""

import hashlib
import json
import os
import re
import struct
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import platformdirs

from selectenv.checks import check_instance, check_path
from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.endings import take_endings
from selectenv.datasets.grouping import regroup
from selectenv.datasets.groups import STORED_CELLS, STORED_CENTRES, STORED_IDS
from selectenv.datasets.images import take_images
from selectenv.datasets.naming import take_stored_columns
from selectenv.datasets.state_observations import StateObservations
from selectenv.datasets.vector_observations import STORED_VALUES, take_vectors
from selectenv.errors import CacheWarning, DatasetFileError
from selectenv.io.atomic import whole_file

FORMAT = "selectenv-dataset"
VERSION = 2
NAMES_VERSION = 3
"""Version of files with names of actions or columns of states, which releases that read only version 2 do not know."""
VECTORS_VERSION = 4
"""Version of files with vectors or groups."""
ENDINGS_VERSION = 5
"""Version of files with endings of transitions."""
VERSIONS = (VERSION, NAMES_VERSION, VECTORS_VERSION, ENDINGS_VERSION)
STORED = (STORED_IDS, STORED_CELLS, STORED_CENTRES)
"""Keys of the arrays that describe groups."""
ALIGNMENT = 64
HEADER_BYTES = 1 << 16
"""Upper limit on the header of an array."""
MAPPED_BYTES = 1 << 20
"""Larger arrays are memory-mapped instead of read."""


def save(dataset: OfflineDataset, path: str | os.PathLike[str]) -> Path:
    """Write a dataset to one file, atomically, and return its path."""
    check_instance("dataset", dataset, OfflineDataset)
    target = check_path("path", path)
    header = {
        "format": FORMAT,
        "version": _version(dataset),
        "n_actions": dataset.n_actions,
        "spec": dict(dataset.spec),
        "digest": _digest(dataset),
    }
    arrays: dict[str, Any] = {"header": np.array(json.dumps(header)), **dataset.arrays()}
    with whole_file(target) as file, zipfile.ZipFile(file, "w") as bundle:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy")
            member.file_size = array.nbytes + HEADER_BYTES  # beyond 2 GiB the entry grows another 20 bytes
            more = 20 if member.file_size > zipfile.ZIP64_LIMIT else 0
            padding = -(bundle.start_dir + 30 + len(member.filename) + 4 + more) % ALIGNMENT
            member.extra = struct.pack("<HH", 0xFFFF, padding) + bytes(padding)  # aligned for memory mapping
            with bundle.open(member, "w") as entry:
                np.lib.format.write_array(entry, np.asarray(array, order="C"), allow_pickle=False)
    return target


def load(path: str | os.PathLike[str]) -> OfflineDataset:
    """Read a dataset and check it against its own hash.

    Raises:
        DatasetFileError: the file is missing, damaged, not a dataset, or of another format version.
    """
    path = check_path("path", path)
    try:
        arrays = _read(Path(path))
        header = json.loads(str(arrays.pop("header")))
        if header["format"] != FORMAT:
            raise KeyError("format")
        version, digest = int(header["version"]), header["digest"]
    except FileNotFoundError:
        raise DatasetFileError(f"there is no dataset file {os.fspath(path)!r}") from None
    except (KeyError, TypeError, AttributeError, IsADirectoryError):
        raise DatasetFileError(f"{os.fspath(path)!r} is not a dataset written by selectenv") from None
    except Exception as error:  # corrupt files raise unrelated exception types: those of NumPy, zipfile, zlib, ...
        raise DatasetFileError(f"{os.fspath(path)!r} is damaged or not a dataset file ({error})") from None
    if version not in VERSIONS:
        raise DatasetFileError(
            f"{os.fspath(path)!r} has format version {version}; this release reads {', '.join(map(str, VERSIONS))}"
        )
    try:
        dataset = assembled(arrays, int(header["n_actions"]), header["spec"])
        intact = _digest(dataset) == digest
    except Exception as error:  # a corrupt header raises unrelated exception types
        raise DatasetFileError(f"{os.fspath(path)!r} is damaged: {error}") from None
    if not intact:
        raise DatasetFileError(f"{os.fspath(path)!r} is damaged: its content does not match its hash")
    return dataset


def assembled(arrays: dict[str, Any], n_actions: int, spec: Mapping[str, Any]) -> OfflineDataset:
    """Return the dataset that has these `OfflineDataset.arrays`, from which they are removed.

    Args:
        arrays: the columns by name, with or without rewards.
        n_actions: number of actions.
        spec: how the data were made; "groups" must be there if the states are groups.
    """
    observations: StateObservations | None = None
    if "images" in arrays:
        observations = take_images(arrays)
    elif STORED_VALUES in arrays:
        observations = take_vectors(arrays)
    groups = {name: arrays.pop(name) for name in STORED if name in arrays}
    dataset = OfflineDataset(
        n_actions=n_actions,
        hidden_reward=arrays.pop("hidden_reward", None),
        spec=spec,
        observations=observations,
        state_columns=take_stored_columns(arrays),
        endings=take_endings(arrays),
        **arrays,
    )
    return regroup(dataset, groups) if groups else dataset


def _read(path: Path) -> dict[str, Any]:
    """Return the arrays of a file; long ones are memory-mapped."""
    with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
        members = file.zip.infolist()
        arrays = {}
        for member in members:
            name = member.filename.removesuffix(".npy")
            long = member.file_size > MAPPED_BYTES and member.compress_type == zipfile.ZIP_STORED
            arrays[name] = _map(path, raw, member) if long else file[name]
    return arrays


def _map(path: Path, raw: BinaryIO, member: zipfile.ZipInfo) -> Any:
    """Return an uncompressed array of a zip file, memory-mapped and read-only."""
    raw.seek(member.header_offset)
    local = raw.read(30)  # the fixed part of a local header; it ends with the lengths of name and extra field
    if len(local) != 30 or local[:4] != b"PK\x03\x04":
        raise zipfile.BadZipFile(f"{member.filename} has no local header")
    raw.seek(int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little"), os.SEEK_CUR)
    version = np.lib.format.read_magic(raw)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read_header(raw)
    if dtype.hasobject or fortran:
        raise ValueError(f"{member.filename} is not a plain array")
    offset = raw.tell()
    if offset % dtype.itemsize:  # written by another program
        return np.fromfile(raw, dtype, int(np.prod(shape))).reshape(shape)
    return np.asarray(np.memmap(path, dtype, "r", offset, shape))


def _version(dataset: OfflineDataset) -> int:
    """Return the oldest format version that can hold a dataset."""
    if dataset.endings is not None:
        return ENDINGS_VERSION
    if dataset.vectors is not None or dataset.groups is not None:
        return VECTORS_VERSION
    return VERSION if dataset.action_names is None and not dataset.state_columns else NAMES_VERSION


def _digest(dataset: OfflineDataset) -> str:
    """Return a hash of content and spec."""
    text = json.dumps([dataset.fingerprint, dict(dataset.spec)], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def cache_folder() -> Path:
    """Return the directory of cached datasets: `SELECTENV_CACHE`, or the platform's cache directory."""
    chosen = os.environ.get("SELECTENV_CACHE")
    return Path(chosen) if chosen else platformdirs.user_cache_path("selectenv", appauthor=False)


def cached(spec: dict[str, Any], make: Callable[[], OfflineDataset]) -> OfflineDataset:
    """Return the dataset of ``spec`` from the cache, or make it and keep it.

    A damaged file is replaced. If the cache cannot be written, a warning is issued and the dataset is still returned.
    """
    key = hashlib.blake2b(json.dumps([VERSION, spec], sort_keys=True).encode(), digest_size=16).hexdigest()
    name = re.sub(r"[^\w-]", "_", spec["world"])  # a name must not lead out of the directory
    path = cache_folder() / f"{name}-{key}.npz"
    if path.exists():
        try:
            found = load(path)
            if dict(found.spec) == spec:
                return found
        except DatasetFileError:
            pass  # our own file, and we can make it again
    dataset = make()
    try:
        save(dataset, path)
    except OSError as error:
        warnings.warn(f"the dataset could not be cached in {path.parent}: {error}", CacheWarning, stacklevel=2)
    return dataset
