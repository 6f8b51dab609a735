"""The studies, found by themselves: a module here with a `STUDY` is one."""

import importlib
import pkgutil

from experiments.study import Study


def find_studies() -> dict[str, Study]:
    """Return all studies by name, in their places."""
    modules = (importlib.import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__))
    found = [module.STUDY for module in modules]
    return {study.name: study for study in sorted(found, key=lambda study: (study.place, study.name))}
