"""The README is true: its snippets run and print what they say, its commands exist, its tables match the code."""

import contextlib
import csv
import io
import re
import subprocess
from pathlib import Path

import gymnasium as gym
import pytest

import agents
import selectenv
from experiments.cli import main as cli
from selectenv.domains.minatar.experts import load_expert
from selectenv.domains.minatar.games import MinAtarWorld

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
SNIPPETS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = [
    line.split("#")[0].strip()
    for block in re.findall(r"```bash\n(.*?)```", README, flags=re.DOTALL)
    for line in block.splitlines()
]


@pytest.mark.parametrize("code", SNIPPETS)
def test_snippets_run_and_print_what_they_say(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    lines = printed.getvalue().splitlines()
    for said in re.findall(r"^print\(.*  # ([-\d\[(].*|True.*|False.*)$", code, flags=re.MULTILINE):
        assert said in lines


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_exist(command):
    program, *arguments = command.split()
    if program == "make":
        subprocess.run([program, *arguments, "--dry-run"], cwd=ROOT, check=True, capture_output=True)
    else:
        assert program == "selectenv"
        assert callable(cli.parser().parse_args(arguments).command)


def test_the_table_of_verdicts_is_that_of_the_full_run():
    with (ROOT / "docs" / "results.csv").open() as file:
        every = [row for row in csv.DictReader(file) if row["verdict"] and row["ours"] != "not enumerated"]
    rows = [row for row in every if row["world"] in selectenv.TABULAR]
    studies = ("heuristics-uds", "heuristics-adapted", "trained-uds", "trained-adapted")
    for strategy in ("uniform", "visitation", "brute-force", "sequential-greedy"):
        mine = [row["verdict"] for row in rows if row["strategy"] == strategy and row["study"] in studies]
        agree = sum(verdict.startswith("agrees") for verdict in mine)
        assert f"| {strategy} (UDS, adapted) | {agree} | {len(mine)} |" in README
    assert not any(row["verdict"].startswith("impossible") for row in rows)
    assert f"none of the {len(rows):,} is impossible" in README
    games = [row for row in every if row["study"].startswith("breakout")]
    agree = sum(row["verdict"].startswith("agrees") for row in games)
    assert f"{agree} of the {len(games)} published figures of Breakout agree" in README
    networks = [row for row in every if row["study"] == "minatar-trained"]
    agree = sum(row["verdict"].startswith("agrees") for row in networks)
    assert f"{agree} of {len(networks)} published figures agree at this scale" in README


def test_the_table_of_selectors_is_that_of_the_full_run():
    with (ROOT / "docs" / "results.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["study"] == "learned"]
    gaps = {(row["strategy"], row["setting"]): row for row in rows if row["world"] == "six worlds"}
    table = re.findall(r"^\| \**([\w-]+)\** \| [\w, ]+ \| ([\d.]+)( \([\d. to]+\))? \| ", README, flags=re.MULTILINE)
    assert sorted(name for name, _, _ in table) == sorted(name for name, learner in gaps if learner == "uds")
    assert [float(gap) for _, gap, _ in table] == sorted(float(gap) for _, gap, _ in table)
    for name, gap, interval in table:
        row = gaps[name, "uds"]
        assert gap == f"{float(row['ours']):.2f}"
        low, high = map(float, row["95 % interval"].split(" to "))
        assert interval == (f" ({low:.2f} to {high:.2f})" if name.startswith("learned") else "")


def test_every_environment_is_in_the_table():
    rows = re.findall(r"^\| `(RewardSelection-\w+-v0)` \| (\d+) \| (\d+) \| (\d+) \|", README, flags=re.MULTILINE)
    games = re.findall(
        r"^\| `(RewardSelection-\w+-v0)` \| (\d+) \| (\d+) \| [\d,]+ \| ([\d.]+) \+- ([\d.]+) \|",
        README,
        flags=re.MULTILINE,
    )
    listed = [row[0] for row in rows + games]
    assert [*listed, "RewardSelection-Random-v0"] == [env for env in gym.registry if env.startswith("RewardSelection-")]
    assert "`RewardSelection-Random-v0`" in README
    for env_id, actions, channels, mean, error in games:
        game = MinAtarWorld(env_id.split("-")[1])
        card = load_expert(game).card
        assert (game.n_actions, game.shape[2]) == (int(actions), int(channels))
        assert (f"{card['return']:.1f}", f"{card['return_error']:.1f}") == (mean, error)
    for env_id, states, actions, horizon in rows:
        world = selectenv.TABULAR[env_id.split("-")[1]].make()
        assert (world.n_states, world.n_actions, world.horizon) == (int(states), int(actions), int(horizon))


def test_pictures_exist():
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README):
        assert (ROOT / picture).stat().st_size > 1000


def test_every_agent_is_in_the_table():
    rows = re.findall(r"^\| `([\w-]+)` \| (yes|no) \| (\w+) \| (\w+) \|", README, flags=re.MULTILINE)
    assert [row[0] for row in rows] == list(agents.AGENTS)
    for name, closed, training, evaluator in rows:
        taxonomy = agents.AGENTS[name][0].taxonomy
        assert (taxonomy.test_loop == "closed") == (closed == "yes")
        assert (taxonomy.training, taxonomy.evaluator) == (training, evaluator)
