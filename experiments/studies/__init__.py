"""The studies, found by themselves: a module here with a `STUDY` is one."""

import importlib
import pkgutil

from experiments.engine.study import Study


def find_studies() -> dict[str, Study]:
    """Return all studies by name, in their places."""
    names = (module.name for module in pkgutil.walk_packages(__path__, f"{__name__}."))
    found = [module.STUDY for module in map(importlib.import_module, names) if hasattr(module, "STUDY")]
    return {study.name: study for study in sorted(found, key=lambda study: (study.place, study.name))}
