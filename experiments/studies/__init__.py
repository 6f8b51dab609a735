"""Discovery of studies: modules of this package with a `STUDY`, and entry points of the group `selectenv.studies`."""

import importlib
import pkgutil
from importlib.metadata import entry_points
from typing import Any

from experiments.engine.study import Study
from selectenv.checks import check_name, shown
from selectenv.errors import ExtensionError, OptionError
from selectenv.references import find_reference, is_reference

GROUP = "selectenv.studies"


def find_studies() -> dict[str, Study]:
    """Return all studies by name, sorted by their `place`.

    Raises:
        ExtensionError: an entry point of another package cannot be loaded or is not a study.
    """
    names = (module.name for module in pkgutil.walk_packages(__path__, f"{__name__}."))
    modules = (importlib.import_module(name) for name in names)
    found: list[Study] = [study for module in modules if (study := getattr(module, "STUDY", None)) is not None]
    found += [_load(point) for point in entry_points(group=GROUP)]
    return {study.name: study for study in sorted(found, key=lambda study: (study.place, study.name))}


def find_study(name: str) -> Study:
    """Return a study by its name, or one that is not registered by "module:STUDY".

    Raises:
        UnknownNameError: there is no such study; the message names the closest match.
        ExtensionError: the module does not exist or cannot be imported, or what it names is not a study.
        OptionError: a user-defined study has the name of another one, so that their results cannot be told apart.
    """
    studies = find_studies()
    if not is_reference(name):
        return studies[check_name("study", name, [*studies, "all"])]
    study = find_reference("study", name)
    if not isinstance(study, Study):
        raise ExtensionError(f"{name} must be a Study, not {shown(study)}")
    if studies.get(study.name, study) != study:
        raise OptionError(f"{name} is called {study.name!r}, and so is another study: choose another name for it")
    return study


def _load(point: Any) -> Study:
    """Return the study of an entry point, which names a `Study` or a module with a `STUDY`."""
    try:
        loaded = point.load()
        study = getattr(loaded, "STUDY", loaded)
    except Exception as error:
        raise ExtensionError(f"the study {point.name!r} cannot be loaded from {point.value!r}: {error}") from error
    if not isinstance(study, Study):
        raise ExtensionError(f"the study {point.name!r} must be a Study, or a module with a STUDY, not {study!r}")
    return study
