"""Odd arguments of the command line: a message and exit code 1 or 2, never a traceback."""

import shutil
import warnings
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from experiments.cli.main import main
from selectenv import LabellingSession
from selectenv.errors import SelectEnvWarning
from tests.odd_arguments import small_objects as small
from tests.stress import repetitions

ODD = {
    "empty": "",
    "blank": " ",
    "word": "odd",
    "dash": "-",
    "negative": "-1",
    "zero": "0",
    "half": "0.5",
    "nan": "nan",
    "inf": "inf",
    "1e400": "1e400",
    "many digits": "9" * 5000,
    "surrogate": "odd\udcff",
    "braces": "{0} %s %(a)d",
    "newline": "a\nb",
    "long": "x" * 5000,
    "slash": "/",
    "slashes": "Graph//odd/",
    "star": "*",
    "home": "~/odd",
    "parent": "..",
    "directory": "some-directory",
    "file": "some-file",
    "below a file": "some-file/x",
    "kernel": "/proc/odd/x",
    "a world": "Graph",
    "a strategy": "Graph/uniform",
    "a module": "os:getcwd",
    "no module": "no_such_module:thing",
    "no file": "no-such-file.zip",
    "strategy of a module": "Graph/os:getcwd",
    "no function": "os:no_such_function",
    "a constant": "os:sep",
    "colon": ":",
    "an option": "--help",
    "unknown option": "--no-such-option",
    "option with value": "--seeds=odd",
}
RESULTS = ("--results", "results.sqlite")
SESSION = ("--session", "new.sqlite")
LOG = ("--state", "state", "--action", "action")
COMMANDS: dict[str, tuple[str, ...]] = {
    "command": ("?",),
    "list": ("list", "?"),
    "run study": ("run", "?", "--only", "Graph/uniform", *RESULTS),
    "run only": ("run", "heuristics-uds", "--seeds", "1", "--only", "?", "--scale", "odd", *RESULTS),
    "run seeds": ("run", "heuristics-uds", "--only", "Nowhere", "--seeds", "?", *RESULTS),
    "run solver": ("run", "heuristics-uds", "--only", "Nowhere", "--solver", "?", *RESULTS),
    "run scale": ("run", "heuristics-uds", "--only", "Graph/odd", "--scale", "?", *RESULTS),
    "run jobs": ("run", "heuristics-uds", "--only", "Nowhere", "--jobs", "?", *RESULTS),
    "run results": ("run", "heuristics-uds", "--only", "Graph/odd", "--results", "?"),
    "run tensorboard": ("run", "heuristics-uds", "--only", "Graph/odd", "--tensorboard", "?", *RESULTS),
    "compare study": ("compare", "?", *RESULTS),
    "compare results": ("compare", "heuristics-uds", "--results", "?"),
    "report results": ("report", "--results", "?"),
    "report out": ("report", "--out", "?", *RESULTS),
    "report csv": ("report", "--csv", "?", *RESULTS),
    "report only": ("report", "--only", "?", *RESULTS),
    "report seeds": ("report", "--seeds", "?", *RESULTS),
    "tune-guided world": ("tune-guided", "?", "--trials", "1", "--seeds", "1"),
    "tune-guided trials": ("tune-guided", "Nowhere", "--trials", "?"),
    "tune-guided storage": ("tune-guided", "Nowhere", "--storage", "?"),
    "show world": ("show", "?"),
    "show labels": ("show", "Graph", "--labels", "?", "--strategies", "uniform", "--out", "shown"),
    "show strategies": ("show", "Graph", "--labels", "2", "--strategies", "uniform", "?", "--out", "shown"),
    "show out": ("show", "Graph", "--labels", "2", "--strategies", "uniform", "--out", "?"),
    "train-expert game": ("train-expert", "?", "--steps", "0"),
    "train-expert steps": ("train-expert", "Nowhere", "--steps", "?"),
    "train-expert seed": ("train-expert", "Nowhere", "--seed", "?"),
    "experts out": ("experts", "--out", "?"),
    "train-selector decisions": ("train-selector", "--decisions", "?", "--hidden", "0"),
    "train-selector rate": ("train-selector", "--rate", "?", "--decisions", "0"),
    "best world": ("best", "?"),
    "best labels": ("best", "Graph", "--labels", "?"),
    "best strategies": ("best", "Graph", "--labels", "3", "--strategies", "?"),
    "best learner": ("best", "Graph", "--learner", "?"),
    "label action": ("label", "?", "some-file"),
    "label start log": ("label", "start", "?", *SESSION, "--state", "a", "--action", "b", "--budget", "1"),
    "label start state": ("label", "start", "log.csv", *SESSION, "--state", "?", "--action", "b", "--budget", "1"),
    "label start budget": ("label", "start", "log.csv", *SESSION, *LOG, "--budget", "?"),
    "label start session": ("label", "start", "log.csv", "--session", "?", *LOG, "--budget", "1"),
    "label start strategy": ("label", "start", "log.csv", *SESSION, *LOG, "--budget", "1", "--strategy", "?"),
    "label start learner": ("label", "start", "log.csv", *SESSION, *LOG, "--budget", "1", "--learner", "?"),
    "label start bins": ("label", "start", "log.csv", *SESSION, *LOG, "--budget", "1", "--bins", "?"),
    "label start rewards": ("label", "start", "log.csv", *SESSION, *LOG, "--budget", "1", "--rewards", "0", "?"),
    "label ask": ("label", "ask", "?"),
    "label serve file": ("label", "serve", "?", "--no-browser"),
    "label serve port": ("label", "serve", "nowhere.sqlite", "--no-browser", "--port", "?"),
    "label serve choices": ("label", "serve", "nowhere.sqlite", "--no-browser", "--choices", "?"),
    "label status": ("label", "status", "?"),
    "label export file": ("label", "export", "?"),
    "label export out": ("label", "export", "labels.sqlite", "--out", "?"),
    "label export questions": ("label", "export", "labels.sqlite", "--questions", "?"),
    "label export tasks": ("label", "export", "labels.sqlite", "--label-studio", "?"),
    "label import file": ("label", "import", "?", "some-file"),
    "label import labels": ("label", "import", "labels.sqlite", "?"),
    "label import annotator": ("label", "import", "labels.sqlite", "log.csv", "--annotator", "?"),
}
"""What is asked, with a question mark where the odd argument goes; none of it may start hours of work."""


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run commands in a directory of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "some-directory").mkdir()
    (tmp_path / "some-file").write_text("not ours")
    (tmp_path / "log.csv").write_text("state,action,reward\n1,0,0\n2,1,0\n1,1,0\n2,0,1\n")
    shutil.copy(session_file(), tmp_path / "labels.sqlite")


@cache
def session_file() -> Path:
    """Return a session with one answer."""
    path = small.folder() / "command.sqlite"
    with LabellingSession(small.dataset_without_rewards(), "uniform", 3, path) as session:
        query = session.ask()
        assert query is not None
        session.tell(query.id, 1.0)
    return path


def defect(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str | None:
    """Return what is wrong with the answer to a command line; None if nothing is."""
    capsys.readouterr()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            code: Any = main(arguments)
        except SystemExit as stop:
            code = 0 if stop.code is None else stop.code
            if code not in (0, 2):
                return f"exits with {code!r}"
        except Exception as error:
            return f"{type(error).__name__}: {error!s:.200}"
    said = capsys.readouterr().err
    strange = [one for one in caught if not issubclass(one.category, SelectEnvWarning)]
    if strange:
        return f"warns {strange[0].category.__name__}: {strange[0].message}"
    if code not in (0, 1, 2, 130):
        return f"returns {code!r}"
    if code == 1 and "error: " not in said:
        return "fails without a message"
    return "shows a traceback" if "Traceback" in said else None


@pytest.mark.parametrize("name", COMMANDS)
def test_odd_command_lines(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    names, first = list(ODD), zlib.crc32(name.encode())
    count = repetitions(5, len(names))
    chosen = [names[(first + i * 8) % len(names)] for i in range(count)]
    found = {odd: defect([ODD[odd] if part == "?" else part for part in COMMANDS[name]], capsys) for odd in chosen}
    assert {odd: what for odd, what in found.items() if what} == {}
