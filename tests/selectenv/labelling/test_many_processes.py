"""Several processes on one file, and processes that are killed: no answer is lost, none is given twice."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest

import selectenv
from selectenv.labelling.lease_owners import has_ended, new_owner
from tests.stress import repetitions

WORKER = """
import os, sys
from selectenv import LabellingSession
path, log, name = sys.argv[1:]
with LabellingSession.open(path) as session, open(log, "a") as file:
    print("ready", flush=True)
    while query := session.ask(annotator=name):
        session.tell(query.id, float(query.id) + 0.5, annotator=name)
        file.write(f"{query.id}\\n")  # the answer was acknowledged
        file.flush()
        os.fsync(file.fileno())
"""


def line(states):
    """Return data of a long walk: every state leads to the next one."""
    numbers = np.arange(states)
    return selectenv.from_arrays(numbers, numbers % 2, numbers + 1, numbers == states - 1)


def start(path, log, name=""):
    command = [sys.executable, "-c", WORKER, str(path), str(log), name]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


def acknowledged(log):
    return [int(text) for text in log.read_text().splitlines()] if log.exists() else []


@pytest.mark.parametrize("strategy", ["uniform", "visitation-on-policy"])
def test_killed_processes_lose_nothing(tmp_path, strategy):
    """Workers are killed at random moments; what they acknowledged is there, once, as it was told."""
    rng, kills, wanted, sessions, budget = random.Random(0), 0, repetitions(2, 100), 0, 150
    while kills < wanted:
        path, log, before = tmp_path / f"{sessions}.sqlite", tmp_path / f"{sessions}.log", kills
        sessions += 1
        selectenv.LabellingSession(line(200), strategy, budget, path, seed=sessions).close()
        finished = False
        while kills < wanted and not finished:
            process = start(path, log)
            time.sleep(rng.uniform(0, 0.3))
            finished = process.poll() is not None
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
            kills += not finished
            told = check(path, log, kills - before)
        assert not finished or len(told) == budget


def check(path, log, kills):
    """Check a file against what was acknowledged before a number of kills; return the ids of the answers."""
    with selectenv.LabellingSession.open(path) as session:
        answers = session.answers()
        told = [answer.id for answer in answers]
        assert max(Counter(told).values(), default=0) <= 1, "an answer was given twice"
        assert not set(acknowledged(log)) - set(told), "an answer was lost"
        assert len(told) - len(acknowledged(log)) <= kills, "an answer was given that nobody told"
        assert all(answer.answer == answer.id + 0.5 for answer in answers)
        assert session.status().handed_out == 0, "a killed process still holds a query"
        assert session.status().answered == len(told)
    return told


def test_four_processes_ask_every_query_once(tmp_path):
    """They share one file, without and with names; together they spend the budget exactly."""
    budget = repetitions(120, 1_000)
    path, logs = tmp_path / "labels.sqlite", [tmp_path / f"{i}.log" for i in range(4)]
    selectenv.LabellingSession(line(budget + 50), "uniform", budget, path).close()
    processes = [start(path, log, name) for log, name in zip(logs, ("", "", "ann", "bob"), strict=True)]
    for process in processes:
        process.communicate(timeout=600)
        assert process.returncode == 0
    told = [state for log in logs for state in acknowledged(log)]
    assert len(told) == len(set(told)) == budget
    with selectenv.LabellingSession.open(path) as session:
        assert sorted(answer.id for answer in session.answers()) == sorted(told)
        assert session.status().done
        assert session.ask() is None


def test_three_processes_answer_every_query_twice(tmp_path):
    """Each query goes to two of three annotators, never to a third one, and never twice to the same."""
    budget, names = repetitions(40, 500), ("ann", "bob", "carl")
    path, logs = tmp_path / "labels.sqlite", {name: tmp_path / f"{name}.log" for name in names}
    selectenv.LabellingSession(line(budget + 20), "uniform", budget, path, answers_per_query=2).close()
    for process in [start(path, log, name) for name, log in logs.items()]:
        process.communicate(timeout=600)
        assert process.returncode == 0
    told = Counter((state, name) for name, log in logs.items() for state in acknowledged(log))
    assert set(told.values()) == {1}
    assert set(Counter(state for state, _ in told).values()) == {2}
    with selectenv.LabellingSession.open(path) as session:
        assert {(answer.id, answer.annotator) for answer in session.answers()} == set(told)
        assert len(session.labels()) == budget


def test_owners_of_leases_are_known_to_have_ended():
    assert not has_ended(new_owner())
    assert not has_ended("")
    assert not has_ended("another-machine 1 0 abc")
    code = "from selectenv.labelling.lease_owners import new_owner; print(new_owner())"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    owner = child.stdout.read().strip()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert has_ended(owner)  # also before its exit code is fetched
    child.communicate()
    assert has_ended(owner)
    machine, pid, started, name = new_owner().split(" ")
    assert not has_ended(f"{machine} {pid} {started} {name}")
    if os.path.exists("/proc"):
        assert has_ended(f"{machine} {pid} 1 {name}")  # the number of the process was given to another one
        container = machine.replace("pid:[", "pid:[1")
        assert container != machine
        assert not has_ended(f"{container} {pid} 1 {name}")  # it numbers its processes separately
