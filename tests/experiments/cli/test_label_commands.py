"""`selectenv label` on the log that ships with the package, in a real terminal and from other programs."""

import csv
import io
import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from contextlib import ExitStack, closing

import numpy as np
import pytest

import selectenv
from experiments.cli.main import main, parser
from experiments.labelling.query_texts import query_text
from selectenv.errors import AnswerRangeError

COLUMNS = ["--state", "place", "load", "--action", "action", "--episode", "trip", "--time", "time"]
IN_TERMINAL = """
import fcntl, runpy, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
runpy.run_module("selectenv", run_name="__main__")
"""
"""Runs a command with its terminal in control, so that Ctrl-C reaches it."""
SECONDS = 120
"""After which a terminal that says nothing has failed."""


@pytest.fixture(autouse=True)
def own_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def start(*more, budget="6"):
    return main(
        [
            "label",
            "start",
            str(selectenv.example_log()),
            "--session",
            "labels.sqlite",
            *COLUMNS,
            "--budget",
            budget,
            *more,
        ]
    )


class Terminal:
    """A command in a pseudo-terminal."""

    def __init__(self, *arguments):
        self._here, there = pty.openpty()
        command = [sys.executable, "-c", IN_TERMINAL, *arguments]
        self.process = subprocess.Popen(command, stdin=there, stdout=there, stderr=there, start_new_session=True)
        os.close(there)
        self.text = ""

    def wait_for(self, what):
        """Read until ``what`` appears; return everything since the last time."""
        end, first = time.monotonic() + SECONDS, len(self.text)
        while what not in self.text[first:]:
            assert time.monotonic() < end, f"waited for {what!r} in {self.text[first:]!r}"
            if select.select([self._here], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self._here, 65_536).decode()
                except OSError:  # the command has ended
                    assert what in self.text[first:], f"{what!r} not in {self.text[first:]!r}"
        return self.text[first:]

    def type(self, text):
        os.write(self._here, f"{text}\n".encode())

    def end(self):
        """Return the exit code of the command."""
        return self.process.wait(SECONDS)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self._here)


@pytest.fixture
def terminal():
    """Return a function that starts a command in a terminal."""
    with ExitStack() as stack:
        yield lambda *arguments: stack.enter_context(closing(Terminal(*arguments)))


def test_labelling_in_a_terminal(capsys, terminal):
    assert start("--rewards", "-1", "1") == 0
    said = capsys.readouterr()
    assert "45 states (place, load)" in said.err
    assert "labels.sqlite is ready: 6 labels for 45 states, chosen by auto" in said.out
    assert "next: `selectenv label ask labels.sqlite`" in said.out
    assert "`selectenv label serve labels.sqlite` does so on a page" in said.out
    asking = terminal("label", "ask", "labels.sqlite", "--annotator", "ann")
    first = asking.wait_for("reward (? for help): ")
    assert "Question 1 of 6: place=" in first
    asking.type("?")
    assert "one number per action" in asking.wait_for("reward (? for help): ")
    asking.type("much")
    assert "'much' is not a number" in asking.wait_for("reward (? for help): ")
    asking.type("0.5")
    assert "Question 2 of 6" in asking.wait_for("reward (? for help): ")
    asking.type("u")
    assert "is taken back" in asking.wait_for("reward (? for help): ")
    asking.type("0.25")
    assert "Question 2 of 6" in asking.wait_for("reward (? for help): ")
    asking.type("s")
    assert "Question 2 of 6" in asking.wait_for("reward (? for help): ")
    asking.type("\x03")  # Ctrl-C
    assert "repeat the command to resume" in asking.wait_for("resume")
    assert asking.end() == 130
    with selectenv.LabellingSession.open("labels.sqlite") as session:
        assert [(given.answer, given.annotator) for given in session.answers()] == [(0.25, "ann")]
        assert session.handed_out() == []
    asking = terminal("label", "ask", "labels.sqlite")
    for number in (2, 3, 4, 5, 6):  # another question is asked in place of the one that was skipped
        assert f"Question {number} of 6" in asking.wait_for("reward (? for help): ")
        asking.type("-1")
    last = asking.wait_for("writes labels and policy")
    assert "5 answers stored in labels.sqlite" in last
    assert "the budget is spent; next: `selectenv label export labels.sqlite`" in last
    assert asking.end() == 0


@pytest.mark.parametrize("action", ["start", "ask", "serve", "status", "release", "export", "import"])
def test_every_action_shows_examples_that_exist(action, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["label", action, "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out.partition("examples:")[2]
    examples = re.findall(r"^  selectenv (.*?)   +\S", shown, flags=re.MULTILINE)
    assert examples
    for example in examples:
        assert callable(parser().parse_args(example.split()).command)


def test_status_and_export(capsys, tmp_path):
    assert start() == 0
    with selectenv.LabellingSession.open("labels.sqlite") as session:
        for _ in range(2):
            session.tell(session.ask(annotator="ann").id, 1, annotator="ann")
        session.ask(annotator="bob", keep=True)
    capsys.readouterr()
    assert main(["label", "status", "labels.sqlite"]) == 0
    said = capsys.readouterr().out
    for part in ("2 of 6", "answers of ann", " to bob until 2", "next: `selectenv label ask"):
        assert part in said
    assert "less than the best" not in said
    assert main(["label", "export", "labels.sqlite", "--out", "results"]) == 0
    assert "repeat with --rewards LOW HIGH" in capsys.readouterr().out
    assert main(["label", "export", "labels.sqlite", "--out", "results", "--rewards", "0", "1"]) == 0
    assert "less than the best one" in capsys.readouterr().out
    tables = {}
    for path in (tmp_path / "results").glob("*.csv"):
        with path.open(newline="") as file:
            tables[path.name] = list(csv.DictReader(file))
    assert {name: len(rows) for name, rows in tables.items()} | {"labels.csv": 0} == {
        "labels.csv": 0,
        "policy.csv": 45 * 5,
        "curve.csv": 3,
    }
    assert {row["reward"] for row in tables["labels.csv"]} == {"1.0"}
    assert main(["label", "status", "labels.sqlite"]) == 0
    assert "value of any policy" in capsys.readouterr().out


def test_questions_and_labels_go_through_files(capsys, tmp_path):
    assert start(budget="4") == 0
    assert main(["label", "export", "labels.sqlite", "--questions", "2"]) == 0
    assert "fill in the column reward" in capsys.readouterr().out
    path = tmp_path / "out" / "questions.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    first = rows[0]["state"]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "reward": 1 if row["state"] == first else ""} for row in rows)
    assert main(["label", "import", "labels.sqlite", str(path)]) == 0
    assert "new answers: 1; known before: 0" in capsys.readouterr().out
    assert main(["label", "export", "labels.sqlite", "--questions", "2"]) == 0
    with path.open(newline="") as file:
        states = list(dict.fromkeys(row["state"] for row in csv.DictReader(file)))
    assert len(states) == 2
    assert first not in states
    assert states[0] == list(dict.fromkeys(row["state"] for row in rows))[1], "unanswered questions are exported again"
    (tmp_path / "one.csv").write_text(f'state,reward\n"{states[0]}",1\n')
    assert main(["label", "import", "labels.sqlite", "one.csv", "--annotator", "ann"]) == 0
    with selectenv.LabellingSession.open("labels.sqlite") as session:
        assert [given.annotator for given in session.answers()] == ["", "ann"]
        assert session.undo() == first
        assert session.ask().id == first, "what was exported and answered is not kept for the other tool"


def test_label_studio(capsys, tmp_path):
    assert start("--rewards", "-1", "1", budget="4") == 0
    assert main(["label", "export", "labels.sqlite", "--label-studio", "3"]) == 0
    said = capsys.readouterr().out
    assert "selectenv label import labels.sqlite EXPORT.json" in said
    assert 'min="-1" max="1"' in (tmp_path / "out" / "label-config.xml").read_text()
    tasks = json.loads((tmp_path / "out" / "tasks.json").read_text())
    assert [task["data"]["order"] for task in tasks] == [1, 2, 3]
    for task in tasks:
        value = {"from_name": "reward", "to_name": "state", "type": "number", "value": {"number": 1}}
        task["annotations"] = [{"completed_by": 1, "was_cancelled": False, "result": [value]}]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    assert main(["label", "import", "labels.sqlite", "export.json"]) == 0
    assert "new answers: 3;" in capsys.readouterr().out
    assert main(["label", "export", "labels.sqlite", "--label-studio"]) == 0
    assert [task["data"]["order"] for task in json.loads((tmp_path / "out" / "tasks.json").read_text())] == [4]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    capsys.readouterr()
    assert main(["label", "ask", "labels.sqlite"]) == 0
    assert "the last questions are handed out; next: `selectenv label status" in capsys.readouterr().out


def test_starting_twice_and_starting_otherwise(capsys):
    assert start() == 0
    assert start() == 0
    assert "is this session already" in capsys.readouterr().out
    assert start(budget="7") == 1
    assert "budget=6, not 7" in capsys.readouterr().err
    assert main(["label", "start", "none.csv", "--session", "x.sqlite", *COLUMNS, "--budget", "3"]) == 1
    assert "none.csv" in capsys.readouterr().err
    assert main(["label", "start", str(selectenv.example_log()), "--session", "x.sqlite", "--budget", "3"]) == 1
    assert "--state and --action" in capsys.readouterr().err
    assert start("--bins", "place") == 1
    assert "--bins takes entries such as charge=5" in capsys.readouterr().err
    assert start("--strategy", "es-50") == 1
    assert "'es-50' is trained with the evaluator" in capsys.readouterr().err
    for command in (["label"], ["label", "start", "log.csv", "--session", "x.sqlite", "--budget", "few"]):
        with pytest.raises(SystemExit) as stopped:
            main(command)
        assert stopped.value.code == 2
    assert "'few' is neither a number of labels nor a share of the states" in capsys.readouterr().err


def test_a_failed_start_leaves_nothing_behind(capsys, tmp_path):
    assert start("--rewards", "10", "-20") == 1
    assert "low must not exceed high; they are 10 and -20" in capsys.readouterr().err
    assert start("--strategy", "es") == 1
    assert start("--gamma", "1") == 1
    assert start("--budget", "46") == 1
    assert list(tmp_path.iterdir()) == []
    assert start("--rewards", "-20", "10") == 0
    assert "range of the rewards, stored in labels.sqlite: -20 to 10" in capsys.readouterr().out
    assert start("--rewards", "-30", "10") == 0
    assert main(["label", "status", "labels.sqlite"]) == 0
    assert re.search("range of the rewards +-30 to 10", capsys.readouterr().out)


OWN = """
from dataclasses import dataclass
import numpy as np
from agents import RankingAgent, Taxonomy

@dataclass
class Backwards(RankingAgent):
    "The last state first."
    taxonomy = Taxonomy(test_loop="open", training="none", evaluator="never")

    def scores(self, obs, info):
        return np.where(info["action_mask"] > 0, np.arange(len(info["action_mask"]), dtype=float), np.nan)
"""


def test_strategies_of_a_module_are_named_again(capsys, tmp_path):
    (tmp_path / "backwards_strategy.py").write_text(OWN)
    assert start("--strategy", "backwards_strategy:Backwards") == 0
    assert main(["label", "status", "labels.sqlite"]) == 1
    assert "or --strategy on the command line" in capsys.readouterr().err
    command = ["--strategy", "backwards_strategy:Backwards"]
    assert main(["label", "export", "labels.sqlite", *command, "--questions", "2"]) == 0
    with (tmp_path / "out" / "questions.csv").open(newline="") as file:
        states = list(dict.fromkeys(row["state"] for row in csv.DictReader(file)))
    assert states == sorted(states, reverse=True)
    assert len(states) == 2


def test_the_last_answer_and_handed_out_questions_are_taken_back(capsys, monkeypatch):
    assert start(budget="2") == 0
    assert main(["label", "export", "labels.sqlite", "--questions", "2"]) == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("1\n1\n"))
    assert main(["label", "ask", "labels.sqlite"]) == 0
    assert "`selectenv label release labels.sqlite` takes them back" in capsys.readouterr().out
    assert main(["label", "release", "labels.sqlite", "--annotator", "nobody"]) == 0
    assert "questions taken back: 0" in capsys.readouterr().out
    assert main(["label", "release", "labels.sqlite"]) == 0
    assert "questions taken back: 2" in capsys.readouterr().out
    assert main(["label", "ask", "labels.sqlite"]) == 0
    assert "`selectenv label ask labels.sqlite --undo` takes the last answer back" in capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO("2\n"))
    assert main(["label", "ask", "labels.sqlite", "--undo"]) == 0
    assert re.search("the answer about .* is taken back", capsys.readouterr().out)
    with selectenv.LabellingSession.open("labels.sqlite") as session:
        assert [given.answer for given in session.answers()] == [1.0, 2.0]


def test_an_answer_outside_the_range_is_named_once(capsys):
    assert start("--rewards", "0", "1", budget="2") == 0
    with selectenv.LabellingSession.open("labels.sqlite") as session:
        state = session.ask().id
        with pytest.raises(AnswerRangeError, match=r"5 is outside .* 0 to 1; correct the answer, or widen the range"):
            session.tell(state, 5)
        session.set_reward_range(0, 5)
        session.tell(state, 5)
        session._store.set_note("reward_range", [[0.0], [1.0]])  # as in files of earlier releases
    for command in ("status", "export"):
        capsys.readouterr()
        assert main(["label", command, "labels.sqlite"]) == 0
        said = capsys.readouterr().out
        assert said.count("there is no bound: the range of rewards in state") == 1
        assert "`selectenv label export labels.sqlite --rewards LOW HIGH` changes it" in said
    assert main(["label", "export", "labels.sqlite", "--rewards", "0", "3"]) == 1
    assert main(["label", "export", "labels.sqlite", "--rewards", "0", "5"]) == 0


def test_import_says_what_differs(capsys, tmp_path):
    assert start(budget="2") == 0
    with selectenv.LabellingSession.open("labels.sqlite") as session:
        state = session.ask().id
        session.tell(state, 1)
    (tmp_path / "one.csv").write_text(f'state,reward\n"{state}",2\n')
    assert main(["label", "import", "labels.sqlite", "one.csv"]) == 0
    assert "with other rewards: 1. Those stored stay as they are" in capsys.readouterr().out
    (tmp_path / "two.csv").write_text("state,reward\nplace=moon,2\n")
    assert main(["label", "import", "labels.sqlite", "two.csv"]) == 1
    said = capsys.readouterr().err
    assert "'two.csv', row 2: there is no state with id 'place=moon'; the ids are 'place=charging dock, load=" in said


def test_shares_edges_and_delimiters(capsys, tmp_path):
    (tmp_path / "log.csv").write_text("trip;charge;move\n1;0.9;go\n1;0.6;go\n1;0.2;load\n2;0.3;go\n")
    command = ["label", "start", "log.csv", "--session", "labels.sqlite", "--state", "charge", "--action", "move"]
    command += ["--episode", "trip"]
    assert main([*command, "--budget", "2"]) == 1
    assert "try the delimiter ';'" in capsys.readouterr().err
    assert main([*command, "--budget", "2", "--delimiter", ";"]) == 1
    assert "on the command line, --bins charge=10" in capsys.readouterr().err
    assert main([*command, "--budget", "0.5", "--delimiter", ";", "--bins", "charge=0.25,0.5"]) == 0
    with selectenv.LabellingSession.open("labels.sqlite") as session:
        assert session.dataset.ids.tolist() == ["0.25 to 0.5", "0.5 or more", "below 0.25"]
        assert session.budget == 1


def test_logs_of_other_types(capsys, tmp_path):
    data = selectenv.make_problem("Tree", dataset_size=500, cache=False).dataset
    selectenv.datasets.save(data, tmp_path / "tree.npz")
    assert main(["label", "start", "tree.npz", "--session", "tree.sqlite", "--budget", "3"]) == 0
    frame = data.to_frame()
    frame["state"] = frame["state"].astype("int64")
    frame.to_parquet(tmp_path / "tree.parquet")
    columns = ["--state", "state", "--action", "action", "--episode", "episode", "--terminated", "terminated"]
    command = ["label", "start", "tree.parquet", "--session", "parquet.sqlite", "--budget", "3", *columns]
    assert main([*command, "--bins", "state=4", "--unseen", "exclude"]) == 0
    with selectenv.LabellingSession.open("parquet.sqlite") as session:
        assert session.dataset.n_states <= 4
    assert "tree.sqlite is ready" in capsys.readouterr().out


def test_sessions_about_groups_of_vectors(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    walks = [{"states": rng.normal(size=(11, 2)).cumsum(axis=0), "actions": rng.integers(2, size=10)} for _ in range(9)]
    selectenv.from_episodes(walks).to_frame().to_csv("walks.csv", index=False)
    columns = ["--state", "x0", "x1", "--action", "action", "--episode", "episode", "--time", "step"]
    command = ["label", "start", "walks.csv", "--session", "walks.sqlite", *columns, "--budget", "3"]
    assert main([*command, "--groups", "8"]) == 1
    assert "vectors=True" in capsys.readouterr().err
    assert main([*command, "--vectors", "--groups", "8"]) == 0
    with selectenv.LabellingSession.open("walks.sqlite") as session:
        assert session.dataset.n_states == 8
        assert session.ask().group.columns[1].name == "x1"
    assert main([*command, "--vectors", "--groups", "trips"]) == 1
    assert "which is a number of clusters" in capsys.readouterr().err


def test_vectors(capsys, tmp_path):
    rows = "\n".join(f"{i // 10},{i / 7:.3f},{-i / 3:.3f},{i % 2}" for i in range(40))
    (tmp_path / "log.csv").write_text(f"trip,x,v,move\n{rows}\n")
    start = ["label", "start", "log.csv", "--state", "x", "v", "--action", "move", "--episode", "trip", "--vectors"]
    assert main([*start, "--budget", "2", "--session", "plain.sqlite"]) == 0
    assert "warning: 40 of 40 vectors were seen once" in capsys.readouterr().err
    assert main([*start, "--budget", "2", "--session", "labels.sqlite", "--groups", "4"]) == 0
    assert "warning" not in capsys.readouterr().err
    with selectenv.LabellingSession.open("labels.sqlite") as session:
        text = query_text(session, query := session.ask())
        assert text.startswith(f"Question 1 of 2: group {query.id}\n")
        session.tell(query.id, 1)
        wanted = session.policy().action([1.0, -2.0])
    assert main(["label", "export", "labels.sqlite"]) == 0
    assert "selectenv.load_policy('out/policy.npz')" in capsys.readouterr().out
    assert selectenv.load_policy("out/policy.npz").action([1.0, -2.0]) == wanted


def test_missing_directories_are_named(capsys):
    assert start("--session", "none/labels.sqlite") == 1
    assert "there is no directory 'none'" in capsys.readouterr().err


def test_files_of_other_countries(capsys, tmp_path):
    (tmp_path / "log.csv").write_bytes("trip;ort;move;x\n1;K\u00fcche;go;0,5\n1;Flur;go;1,5\n".encode("cp1252"))
    start = [
        "label",
        "start",
        "log.csv",
        "--state",
        "ort",
        "x",
        "--action",
        "move",
        "--episode",
        "trip",
        "--budget",
        "1",
    ]
    start += ["--session", "labels.sqlite", "--delimiter", ";", "--bins", "x=2"]
    assert main(start) == 1
    assert "--encoding cp1252" in capsys.readouterr().err
    assert main([*start, "--encoding", "cp1252"]) == 1
    assert "--decimal ," in capsys.readouterr().err
    assert main([*start, "--encoding", "cp1252", "--decimal", ","]) == 0
