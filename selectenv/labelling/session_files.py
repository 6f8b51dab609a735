"""Making and opening the files of sessions, datasets included."""

import os
from pathlib import Path

from selectenv.checks import check_instance, check_parent
from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.storage import save
from selectenv.errors import FileError, SessionFileError
from selectenv.labelling.label_store import LabelStore, create
from selectenv.labelling.session_settings import SessionSettings
from selectenv.labelling.stored_dataset import is_large, load_beside, pack, path_beside, unpack


def make_or_resume(path: Path | None, settings: SessionSettings, dataset: OfflineDataset) -> LabelStore:
    """Return the store of a session: a new one, or that of the file ``path`` if it has the same settings.

    Raises:
        SessionError: the file is a session of another dataset or with other settings.
        SessionFileError: it is damaged, not a session, or cannot be written.
    """
    if path is None:
        return LabelStore(None, settings.stored())
    if not os.path.exists(path):
        _make(path, settings, dataset)
    store, name = LabelStore(path), repr(os.fspath(path))
    try:
        SessionSettings.read(store.settings(), name).check_same(settings, dataset, name)
    except BaseException:
        store.close()
        raise
    return store


def _make(path: Path, settings: SessionSettings, dataset: OfflineDataset) -> None:
    """Make the file of a session, and that of a large dataset beside it; nothing is left behind if this fails."""
    try:
        check_parent(path)
    except FileError as error:
        raise SessionFileError(str(error)) from None
    if not is_large(dataset):
        create(path, settings.stored(), pack(dataset))
        return
    beside = path_beside(path, settings.fingerprint)
    try:
        save(dataset, beside)
        create(path, settings.stored(), None)
    except BaseException:
        if not os.path.exists(path):  # otherwise another process has made a session, which may need the dataset
            beside.unlink(missing_ok=True)
        raise


def dataset_of(
    store: LabelStore, path: Path, settings: SessionSettings, given: OfflineDataset | None
) -> OfflineDataset:
    """Return the dataset of a session: the one that the caller gives, or else the stored one.

    Raises:
        SessionError: the caller gives another one, or the file of a large one is missing.
        SessionFileError: the stored dataset is damaged.
    """
    if given is None:
        content = store.dataset()
        given = load_beside(path, settings.fingerprint) if content is None else unpack(content, path)
    dataset = check_instance("dataset", given, OfflineDataset).without_rewards
    settings.check_dataset(dataset, repr(os.fspath(path)))
    return dataset
