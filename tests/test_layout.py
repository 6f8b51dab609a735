"""The layout of the code: imports point one way, names of modules are unique, files stay small."""

import ast
import subprocess
import sys
import textwrap
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("selectenv", "agents", "experiments")
ROOMS = (
    "errors",
    "typing",
    "checks",
    "streams",
    "references",
    "extensions",
    "options",
    "kernels",
    "io",
    "domains",
    "policies",
    "datasets",
    "learners",
    "evaluation",
    "worlds",
    "problem",
    "view",
    "budget",
    "observation",
    "problem_tables",
    "episode_terms",
    "episode_batch",
    "rendering",
    "env",
    "vector_infos",
    "vector_members",
    "vector_env",
    "vector_checker",
    "labelling",
    "session",
    "random_problems",
    "factory",
    "registration",
    "wrappers",
)
"""Modules and packages of selectenv, left to right: each may import only from its left."""
SHARED_BASENAMES = {"__init__", "__main__", "base", "errors", "registry"}
"""Basenames that occur in several packages and mean the same in each."""
LONGEST = 500


def modules() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def imported(source: str) -> set[str]:
    """Return the dotted names of everything that a module imports, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def to_the_right(path: str, source: str) -> list[str]:
    """Return the imports of a module that point to its right."""
    package, *rest = Path(path).with_suffix("").parts
    wrong = []
    for name in imported(source):
        target, *inner = name.split(".")
        if target not in PACKAGES:
            continue
        if PACKAGES.index(target) > PACKAGES.index(package):
            wrong.append(name)
        elif target == package == "selectenv" and rest[0] in ROOMS and inner:
            room = inner[0]
            if room not in ROOMS or ROOMS.index(room) > ROOMS.index(rest[0]):
                wrong.append(name)
    return wrong


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_to_the_left(path):
    relative = str(path.relative_to(ROOT))
    if relative == "selectenv/__main__.py":  # `python -m selectenv` is the command line of experiments
        return
    assert to_the_right(relative, path.read_text()) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("selectenv/kernels/tabular/model.py", "from selectenv.domains.layout import Layout"),
        ("selectenv/problem.py", "def f():\n    from selectenv.env import RewardSelectionEnv"),
        ("selectenv/env.py", "import agents"),
        ("agents/base.py", "from experiments.engine.cell import Cell"),
        ("selectenv/learners/base.py", "from selectenv import make_problem"),
    ],
)
def test_imports_to_the_right_are_found(path, source):
    assert to_the_right(path, source)


def test_every_room_of_selectenv_has_its_place():
    rooms = {path.stem if path.is_file() else path.name for path in (ROOT / "selectenv").iterdir()}
    assert rooms - {"__init__", "__main__", "__pycache__", "py"} == set(ROOMS)


def test_basenames_are_unique():
    where = defaultdict(list)
    for path in modules():
        where[path.stem].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in where.items() if len(paths) > 1 and name not in SHARED_BASENAMES} == {}


def test_experiments_is_a_house_with_rooms():
    assert len(list((ROOT / "experiments").glob("*.py"))) <= 6


@pytest.mark.parametrize("path", [*modules(), *(ROOT / "tests").rglob("*.py")], ids=lambda p: str(p.relative_to(ROOT)))
def test_files_are_short(path):
    assert len(path.read_text().splitlines()) <= LONGEST


def test_importing_the_package_does_not_import_optional_packages():
    code = """
    import sys
    import selectenv, agents
    unwanted = {"torch", "matplotlib", "stable_baselines3", "optuna", "sklearn", "joblib"}
    unwanted |= {"pandas", "polars", "pyarrow", "minari", "starlette", "uvicorn"}
    assert not unwanted & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
