"""Extending the package: one file each, by decorator or from another package."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import agents
import selectenv
from selectenv.errors import ExtensionError, LearnerError, OptionError, UnknownNameError
from selectenv.extensions import Registry

ROOT = Path(__file__).parent.parent
WORLD, *_ = re.findall(r"```(python)\n(.*?)```", (ROOT / "docs/tutorials/world-and-learner.md").read_text(), re.DOTALL)
EXTENDING = re.findall(r"```(python|toml|bash)\n(.*?)```", (ROOT / "docs/extending.md").read_text(), re.DOTALL)
SNIPPETS = [WORLD, *EXTENDING]


def run(code, cwd, target, *arguments):
    """Run a program outside the tree with the throw-away package installed; return what it prints."""
    path = {"PYTHONPATH": f"{target}:{ROOT}", "SELECTENV_CACHE": str(cwd / "cache")}
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **path}, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Install a package made of the pieces of two pages, without its decorators, into a folder of its own."""
    home, target = tmp_path_factory.mktemp("throwaway"), tmp_path_factory.mktemp("target")
    code = "\n".join(text for language, text in SNIPPETS if language == "python")
    plain = re.sub(
        r"^(@(selectenv|agents)\.register.*|print\(.*|(env|problem|episode) = .*|env\..*)\n", "", code, flags=re.M
    )
    (home / "my_package.py").write_text(plain)
    (home / "broken_package.py").write_text("import a_module_that_does_not_exist\n")
    entries = next(text for language, text in SNIPPETS if language == "toml")
    broken = '[project.entry-points."selectenv.agents"]\nbroken = "broken_package:Agent"\n'
    entries = entries.replace('[project.entry-points."selectenv.agents"]\n', broken)
    (home / "pyproject.toml").write_text(entries.replace('["my_package"]', '["my_package", "broken_package"]'))
    install = (
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--target",
        str(target),
        str(home),
    )
    subprocess.run([sys.executable, *install], check=True, capture_output=True)
    return target


def test_a_package_adds_a_world_a_learner_an_agent_and_a_study(package, tmp_path):
    code = """
    import gymnasium as gym, selectenv, agents, json
    env = gym.make("RewardSelection-Corridor-v0", budget=2, length=4, dataset_size=500)
    played = agents.play(env, agents.make("rarest"), seed=0)
    tree = selectenv.make_problem("Tree", learner="fqi", dataset_size=5000, cache=False, iterations=8)
    performance = tree.performance([15, 19, 23])
    print(json.dumps([env.unwrapped.problem.n_states, played.performance, performance, list(agents.AGENTS)]))
    """
    n_states, performance, tree, names = json.loads(run(code, tmp_path, package))
    assert n_states == 4
    assert performance == pytest.approx(1.0)
    assert tree == pytest.approx(16.904525, abs=1e-6)
    assert {"rarest", "broken"} <= set(names)


def test_an_agent_of_a_package_chooses_the_queries_of_a_session(package, tmp_path):
    """By its name alone: the caller does not import agents, and the file of the session resumes it."""
    code = """
    import selectenv, sys
    log = selectenv.from_arrays(list("aabac"), [0, 1, 0, 0, 1], list("babcx"), [False] * 4 + [True])
    selectenv.LabellingSession(log, "rarest", 3, "labels.sqlite").close()
    with selectenv.LabellingSession.open("labels.sqlite") as session:
        print([query.id for query in session.ask(3)])
    """
    assert run(code, tmp_path, package) == "['b', 'c', 'a']\n"


def test_the_command_line_lists_and_runs_the_study_of_a_package(package, tmp_path):
    code = """
    import sys
    from experiments.cli.main import main
    sys.exit(main(sys.argv[1:]))
    """
    assert "rare-states" in run(code, tmp_path, package, "list")
    for group, name in (("worlds", "Corridor"), ("learners", "fqi"), ("agents", "rarest")):
        assert name in run(code, tmp_path, package, "list", group)
    assert "3 cells run" in run(code, tmp_path, package, "run", "rare-states")


def test_a_broken_entry_point_hurts_only_those_who_ask_for_it(package, tmp_path):
    code = """
    import agents, selectenv
    print(agents.make("uniform").name)
    try:
        agents.make("broken")
    except selectenv.errors.ExtensionError as error:
        print(isinstance(error, ImportError), error)
    """
    printed = run(code, tmp_path, package)
    assert printed.startswith("uniform\nTrue the agent 'broken' of the package 'my-package' cannot be loaded from")
    assert "a_module_that_does_not_exist" in printed


def test_names_are_checked():
    registry = Registry("thing", "selectenv.nothing", lambda name, found: found)
    registry.add("one", 1)
    with pytest.raises(OptionError, match="already"):
        registry.add("one", 2)
    with pytest.raises(OptionError, match="letters"):
        registry.add("o n e", 2)
    with pytest.raises(UnknownNameError, match="Did you mean 'one'"):
        registry.find("On")
    with pytest.raises(UnknownNameError, match="unknown thing"):
        registry.find(["one"])
    assert list(registry) == ["one"]
    assert len(registry) == 1
    with pytest.raises(OptionError, match="already"):
        selectenv.register_world("Tree")(lambda: None)
    with pytest.raises(OptionError, match="already"):
        agents.register("uniform")(agents.LearnedSelector)
    with pytest.raises(TypeError, match="derives from"):
        agents.register("own")(dict)


def test_learners_must_fit(monkeypatch):
    data = selectenv.make_problem("Graph", dataset_size=200, cache=False).dataset
    with pytest.raises(LearnerError, match="method fit"):
        selectenv.SelectionProblem(data, object())

    class Silent:
        def fit(self, dataset, rewards):
            return None

    with pytest.raises(LearnerError, match="it returned None"):
        selectenv.SelectionProblem(data, Silent()).learn([0])


def test_an_extension_error_is_an_import_error():
    assert issubclass(ExtensionError, ImportError)


def test_the_pieces_are_short():
    for language, text in SNIPPETS:
        if language in ("python", "toml", "bash"):
            assert len([line for line in text.splitlines() if line.strip()]) <= 30
