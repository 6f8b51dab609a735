"""The tutorial about a log: its blocks run in order, and numbers are measured in the world behind the log."""

import contextlib
import io
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest

import selectenv
from experiments.cli import main as cli
from selectenv.domains.tabular.delivery_robot import delivery_robot
from selectenv.evaluation import ExactReturns
from selectenv.policies import PolicyList, TablePolicy
from tests.experiments.labelling.served_page import Page, expert_answer, robot_log
from tests.markdown_pages import ROOT, tables, text_of

PAGE = "docs/tutorials/label-your-log.md"
RESULTS = "docs/own-data.md"
SEEDS = 100
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / PAGE).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def run_python(code, names):
    """Run a snippet and check that it prints what its comments say."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, PAGE, "exec"), names)
    said = re.findall(r"^print\(.*\)  # (.*)$", code, flags=re.MULTILINE)
    assert printed.getvalue().splitlines() == said


def run_command(line, capsys):
    """Run a command and return what it prints; at the page, answer until the budget is spent."""
    program, *arguments = shlex.split(line)
    assert program == "selectenv"
    if arguments[:2] != ["label", "serve"]:
        capsys.readouterr()
        assert cli.main(arguments) == 0
        return capsys.readouterr().out
    command = [sys.executable, "-m", "selectenv", *arguments, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            answer_on_the_page(Page(process.stdout.readline().split()[-1]), arguments[2])
        finally:
            process.terminate()
    return ""


def answer_on_the_page(page, path):
    """Answer as somebody who knows the hospital does, with one number for each action."""
    state = page.ask()
    with selectenv.LabellingSession.open(path) as session:
        while state is not None:
            query = session.query(session.dataset.ids[state].item())
            form = {f"action-{i}": str(reward) for i, reward in enumerate(expert_answer(query).values())}
            state = page.state_of(page.post(f"state/{state}/answer", follow=False, mode="action", **form))


def test_the_story_runs_from_the_first_block_to_the_last(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert [language for language, _ in BLOCKS] == ["py", "bash", "bash", "text", "py"]
    printed, names = "", {"__name__": "__main__"}
    for language, code in BLOCKS:
        if language == "py":
            run_python(code, names)
        elif language == "bash":
            printed = "".join(run_command(line, capsys) for line in code.splitlines())
        else:
            assert code in printed
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *("curve.csv", "labels.csv", "policy.csv", "policy.npz")
    ]


@pytest.fixture(scope="module")
def returns():
    """A function that returns the returns of tables of action probabilities in the world behind the log."""
    world = delivery_robot()
    engine = ExactReturns(world)
    return lambda policies: engine.returns(PolicyList([TablePolicy(table) for table in policies]), 1.0)


def policy_with(log, strategy, labels, seed):
    """Return the policy after labels of a strategy, and the states that were asked about."""
    session = selectenv.LabellingSession(log, strategy, labels, seed=seed, unseen="exclude")
    asked = []
    while queries := session.ask(1 if strategy == "terminal-guided" else labels):
        session.tell_many({query.id: expert_answer(query) for query in queries})
        asked += [query.id for query in queries]
    return session.policy().table, asked


def test_what_the_labels_were_worth(returns):
    log = robot_log()
    (table,) = (table for table in tables() if table.header == ("states chosen by", "labels", "return of the policy"))
    for name, labels, shown in table.rows:
        strategy = "uniform" if name == "all states" else name.strip("`")
        seeds = SEEDS if name == "`uniform`" else 3
        policies, asked = zip(*(policy_with(log, strategy, int(labels), seed) for seed in range(seeds)), strict=True)
        assert f"{np.mean(returns(policies)):.2f}" == shown
        if strategy == "terminal-guided":
            assert all(states == asked[0] for states in asked)
    (behaviour,) = returns([log.action_frequencies])
    text = text_of(RESULTS)
    assert f"Means over {SEEDS} seeds" in text
    assert f"The actions of the log itself earn {behaviour:.2f} per trip." in text
    assert f"nobody can do better than {delivery_robot().best_return():.0f}. With twelve labels" in text
    assert "33 states have no label" in text_of(PAGE)
    assert log.n_states - 12 == 33
