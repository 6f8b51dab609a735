"""The command line: first steps, version, help with examples, errors without tracebacks, exit codes."""

import argparse
import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from itertools import pairwise

import numpy as np
import pytest

import agents
import selectenv
from experiments.cli import main as cli
from experiments.cli import study_commands, world_commands
from experiments.errors import TerminatedError
from experiments.studies import find_studies
from selectenv.learners import LEARNERS


def commands():
    (subparsers,) = (a for a in cli.parser()._actions if isinstance(a, argparse._SubParsersAction))
    return subparsers.choices


def test_without_arguments_there_are_three_first_commands(capsys):
    assert cli.main([]) == 0
    printed = capsys.readouterr().out
    lines = [line.split("  ")[1] for line in printed.splitlines() if line.startswith("  selectenv ")]
    assert len(lines) == 3
    for line in lines:
        cli.parser().parse_args(line.split()[1:])  # they exist


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"selectenv {selectenv.__version__}\n"


def test_python_m_selectenv_is_the_command_line():
    done = subprocess.run(
        [sys.executable, "-m", "selectenv", "best", "Tre"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: unknown world 'Tre'")


@pytest.mark.parametrize("name", commands())
def test_every_command_shows_examples_that_exist(name, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([name, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: selectenv {name}")
    examples = re.findall(r"^  selectenv (.*?)   +\S", text.partition("examples:")[2], flags=re.MULTILINE)
    assert examples
    for example in examples:
        assert example.split()[0] == name
        cli.parser().parse_args(example.split())


def test_the_list_of_commands(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    printed = capsys.readouterr().out
    studies, worlds = ["list", "run", "compare", "report", "repair", "archive"], ["show", "best", "experts"]
    training = ["train-expert", "train-selector", "train-stacked", "tune-guided", "tune-selector"]
    assert list(commands()) == ["demo", *studies, *worlds, *training, "label", "benchmark", "bench"]
    assert all(f"\n    {name}" in printed for name in commands())


@pytest.mark.parametrize(
    ("what", "names"),
    [("studies", find_studies()), ("worlds", selectenv.WORLDS), ("agents", agents.AGENTS), ("learners", LEARNERS)],
)
def test_lists_name_everything_and_fit_100_columns(what, names, capsys):
    assert cli.main(["list", what]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    listed = [line.split()[0] for line in lines[2:] if not line.startswith(" ")]
    assert listed == [*names, *(["Random"] if what == "worlds" else [])]
    assert not any("`" in line or "docstring" in line for line in lines)


@pytest.mark.parametrize(
    ("what", "registry"), [("worlds", selectenv.WORLDS), ("agents", agents.AGENTS), ("learners", LEARNERS)]
)
def test_lists_fit_100_columns_with_long_names_of_extensions(what, registry, capsys, monkeypatch):
    name = "a-strategy-world-or-learner-of-a-package-with-a-name-that-takes-more-than-half-of-the-line"
    monkeypatch.setattr(registry, "_found", {name: EntryPoint(name, "no_such_module:Thing", registry.group)})
    assert cli.main(["list", what]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100


def test_learners_and_agents_of_ones_own_are_described_by_their_docstring(capsys, monkeypatch):
    monkeypatch.setattr(LEARNERS, "_rows", dict(LEARNERS._rows))
    monkeypatch.setattr(agents.AGENTS, "_rows", dict(agents.AGENTS._rows))

    @selectenv.register_learner("mine")
    class Mine:
        """Learns nothing at all.

        This line is not shown.
        """

    agents.register("mine")(type("Drawn", (agents.AGENTS["uniform"].kind,), {"__doc__": "Draws.", **FIELDS}))
    for what, said in (("learners", "Learns nothing at all."), ("agents", "Draws.")):
        assert cli.main(["list", what]) == 0
        line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("mine "))
        assert line.endswith(said)


FIELDS = {"__dataclass_fields__": {}}
"""Makes a class a dataclass without options."""


def test_an_extension_that_cannot_be_loaded_does_not_hide_the_others(capsys, monkeypatch):
    broken = EntryPoint("broken", "no_such_module:Thing", agents.AGENTS.group)
    monkeypatch.setattr(agents.AGENTS, "_found", {"broken": broken})
    assert cli.main(["list", "agents"]) == 0
    printed = capsys.readouterr().out
    assert "uniform" in printed
    assert "no_such_module" in printed[printed.index("\nbroken ") :]


def test_list_means_studies(capsys):
    cli.main(["list"])
    cli.main(["list", "studies"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["list", "world"], "Did you mean 'worlds'"),
        (["show", "Tree", "--labels", "0"], "out of range"),
        (["show", "Graph", "--labels", "3", "--strategies", "uniform", "--out", "a-file"], "a-file"),
        (["best", "Tree", "--labels", "4"], "--update"),
        (["tune-guided", ":"], "module:name"),
        (["demo", "--out", "a-file"], "a-file"),
        (["report", "--results", "."], "."),
    ],
)
def test_errors_have_no_traceback(command, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").write_text("")
    assert cli.main(command) == 1
    error = capsys.readouterr().err
    assert re.search(r"^error: ", error, flags=re.MULTILINE)  # kernels may have been compiled first
    assert message in error


def test_the_closest_command_is_suggested(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["lsit"])
    assert stop.value.code == 2
    assert "unknown command 'lsit'" in (error := capsys.readouterr().err)
    assert "Did you mean 'list'?" in error


def test_wrong_usage(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["list", "--quick"])
    assert stop.value.code == 2
    assert "unrecognized arguments: --quick" in capsys.readouterr().err


@pytest.mark.parametrize(("stop", "code"), [(KeyboardInterrupt, 130), (TerminatedError, 143)])
def test_stopped(stop, code, monkeypatch, capsys):
    def stopped():
        raise stop

    monkeypatch.setattr(study_commands, "LISTINGS", {"studies": stopped})
    assert cli.main(["list"]) == code
    assert "repeat the command to resume" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_error():
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "selectenv", "list"]
    pipe = subprocess.Popen(command, env=buffered, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pipe.stdout.close()
    error = pipe.stderr.read()
    pipe.stderr.close()
    assert (pipe.wait(), error) == (0, "")


def test_show_draws_the_strategies(tmp_path, capsys):
    strategies = ["uniform", "sequential-greedy"]
    assert cli.main(["show", "Graph", "--labels", "3", "--strategies", *strategies, "--out", str(tmp_path)]) == 0
    assert (tmp_path / "Graph-3.png").read_bytes()[:4] == b"\x89PNG"
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()[:2]] == strategies
    assert all(name in agents.AGENTS for name in (*world_commands.SHOWN, *world_commands.SHOWN_IN_GAMES))


def test_show_animates_episodes(tmp_path, capsys):
    from PIL import Image, ImageSequence

    command = ["show", "Graph", "--labels", "3", "--strategies", "uniform", "sequential-greedy", "--animate"]
    assert cli.main([*command, "--out", str(tmp_path)]) == 0
    assert str(tmp_path / "Graph-3.gif") in capsys.readouterr().out
    with Image.open(tmp_path / "Graph-3.gif") as animation:
        frames = [np.asarray(frame.convert("RGB"), int) for frame in ImageSequence.Iterator(animation)]
        seconds = [frame.info["duration"] for frame in ImageSequence.Iterator(animation)]
    assert len(frames) == 4  # no label, and one frame per label
    assert seconds == [900, 900, 900, 4000]
    assert all((before != after).any() for before, after in pairwise(frames))
    with Image.open(tmp_path / "Graph-3.png") as figure:
        still = np.asarray(figure.convert("RGB"), int)
    assert np.abs(frames[-1] - still).mean() < 1  # the last frame is the figure, up to the palette
