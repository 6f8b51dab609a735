"""The package as users install it: what is in the wheel, and that it runs outside the repository."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import selectenv
from tests.extra_smoke import CHECKS
from tests.release_check import LARGEST_WHEEL, NEEDED, changelog_problems, problems
from tests.stress import repetitions

ROOT = Path(__file__).parent.parent
PACKAGES = ("selectenv", "agents", "experiments")
DATA = (
    "selectenv/py.typed",
    "agents/py.typed",
    "selectenv/domains/minatar/weights/breakout.npz",
    "selectenv/datasets/logs/delivery_robot.csv",
    "agents/learned/weights/seed-0.npz",
    "experiments/analysis/best_known.json",
    "experiments/analysis/templates/report.html.j2",
    "experiments/labelling/templates/question.html.j2",
    "experiments/labelling/static/page.js",
    "experiments/benchmarks/suite/references_v1.json",
    "experiments/benchmarks/suite/leaderboard/guided.json",
)


def run(*command, folder, env=None, check=True):
    """Run a command in a folder without the repository on its path; return what it printed."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "COV_CORE_SOURCE")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**clean, "SELECTENV_CACHE": str(folder / "cache"), **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel from a copy of the repository, so that nothing is written into it."""
    folder = tmp_path_factory.mktemp("wheel")
    unwanted = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "out", "*.egg-info", "mutants")
    shutil.copytree(ROOT, folder / "copy", ignore=unwanted)
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    run(*pip, "--wheel-dir", folder, folder / "copy", folder=folder)
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_holds_the_packages_with_their_data_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    assert names == files
    assert set(DATA) <= names
    assert sum(name.startswith("experiments/protocol/published_tables/") for name in names) > 10


def test_the_wheel_runs_outside_the_repository(wheel, tmp_path):
    target = tmp_path / "installed"
    run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target, wheel, folder=tmp_path)
    env = {"PYTHONPATH": str(target)}
    where = run(sys.executable, "-c", "import experiments; print(experiments.__file__)", folder=tmp_path, env=env)
    assert Path(where.strip()).is_relative_to(target)
    version = run(sys.executable, "-m", "selectenv", "--version", folder=tmp_path, env=env)
    assert version == f"selectenv {selectenv.__version__}\n"
    few = ("--only", "uniform", "guided") if repetitions(0, 1) == 0 else ()  # every strategy compiles its own kernels
    printed = run(sys.executable, "-m", "selectenv", "demo", "--quick", *few, folder=tmp_path, env=env)
    assert "(best known)" in printed
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["performance.png", "selections.png"]
    assert "train-expert Breakout" in run(sys.executable, "-m", "selectenv", "experts", folder=tmp_path, env=env)


def test_a_release_is_checked(wheel, tmp_path):
    assert "0 source distributions" in problems(wheel.parent)[0]
    source = tmp_path / f"selectenv-{selectenv.__version__}.tar.gz"
    with tarfile.open(source, "w:gz") as archive:
        for name in NEEDED[1:]:
            archive.add(ROOT / name, f"{source.name.removesuffix('.tar.gz')}/{name}")
    shutil.copy(wheel, tmp_path)
    assert problems(tmp_path) == [f"{source.name} lacks {NEEDED[0]}"]
    assert wheel.stat().st_size < LARGEST_WHEEL


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# Changelog\n\n## 0.0.1\n", "begin with the section 'Unreleased'"),
        ("## Unreleased\n\n## 0.0.1\n\n## 0.0.2\n", "must descend"),
        ("## Unreleased\n\n## 99.0.0\n", "newer than that of the package"),
    ],
)
def test_a_changelog_is_checked(text, message):
    (found,) = changelog_problems(text)
    assert message in found


def test_versions_agree(wheel):
    assert wheel.name.startswith(f"selectenv-{selectenv.__version__}-")
    assert f"\nversion: {selectenv.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_every_make_target_is_explained():
    text = (ROOT / "Makefile").read_text()
    targets = re.search(r"^\.PHONY: (.*)$", text, flags=re.MULTILINE)[1].split()
    helped = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in targets:
        assert re.search(rf"^  make {target} +\S", helped, flags=re.MULTILINE), target


@pytest.mark.skipif(repetitions(0, 1) == 0, reason="installs every dependency: make stress")
def test_a_clean_environment(tmp_path):
    run(sys.executable, "-m", "venv", tmp_path / "venv", folder=tmp_path)
    programs = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    shutil.copytree(ROOT, tmp_path / "copy", ignore=shutil.ignore_patterns(".*", "__pycache__", "out", "*.egg-info"))
    run(programs / "python", "-m", "pip", "install", "--quiet", ".", folder=tmp_path / "copy")
    outside = tmp_path / "outside"
    outside.mkdir()
    printed = run(programs / "selectenv", "demo", folder=outside)
    assert "(best known)" in printed
    assert "No figures were drawn: figures need Matplotlib" in printed
    assert "heuristics-uds" in run(programs / "selectenv", "list", folder=outside)
    run(programs / "python", "-m", "pip", "install", "--quiet", ".[plot]", folder=tmp_path / "copy")
    run(programs / "selectenv", "demo", "--quick", folder=outside)
    assert sorted(path.name for path in (outside / "out").iterdir()) == ["performance.png", "selections.png"]


@pytest.mark.skipif(repetitions(0, 1) == 0, reason="installs every dependency: make stress")
@pytest.mark.parametrize("extra", CHECKS)
def test_an_extra_in_a_clean_environment(extra, tmp_path):
    run(sys.executable, "-m", "venv", tmp_path / "venv", folder=tmp_path)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    shutil.copytree(ROOT, tmp_path / "copy", ignore=shutil.ignore_patterns(".*", "__pycache__", "out", "*.egg-info"))
    run(python, "-m", "pip", "install", "--quiet", f".[{extra}]", folder=tmp_path / "copy")
    outside = tmp_path / "outside"
    outside.mkdir()
    assert f"{extra} works" in run(python, "-P", ROOT / "tests/extra_smoke.py", extra, folder=outside)


def test_extras_that_users_install_are_tried_in_continuous_integration():
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    listed = re.search(r"extra: \[(.*)\]", workflow)[1].split(", ")
    assert listed == list(CHECKS)
