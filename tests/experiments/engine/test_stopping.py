"""Nothing outlives a runner that is terminated or killed; the loss of a client or scheduler of Dask is noticed."""

import os
import random
import signal
import subprocess
import sys
import time
import uuid

import psutil
import pytest

from experiments.cli import main as cli
from experiments.cli import study_commands
from experiments.engine.cell import Cell
from experiments.engine.runner import run_cells, run_chunk
from experiments.engine.store import ResultsStore
from experiments.errors import ClusterError, TerminatedError
from selectenv.errors import OptionError, StoppedError
from selectenv.io.stop_requests import stop_if_requested, stop_when
from tests.stress import repetitions

DEADLINE = 5.0
MARK = "SELECTENV_TEST_MARK"


def cells(count=200):
    return [Cell("study", "world", "strategy", seed) for seed in range(count)]


def short(cell):
    time.sleep(0.02)
    return [{"value": cell.seed}]


def endless(cell):
    """The first cells are short, the others last until somebody stops them."""
    time.sleep(0.02 if cell.seed < 8 else 600)
    return [{"value": cell.seed}]


def marking(cell):
    """Leave a mark at the start of every cell and at every checkpoint in it."""
    for part in range(4):
        with open(cell.settings["marks"], "a") as file:
            file.write(f"{cell.seed}.{part}\n")
        time.sleep(cell.settings["seconds"])
        if cell.settings["checkpoints"]:
            stop_if_requested()
    return [{"value": cell.seed}]


RUN = """
import sys
from experiments.engine import runner
from experiments.engine.store import ResultsStore
from tests.experiments.engine import test_stopping as tests
path, function, options = sys.argv[1], getattr(tests, sys.argv[2]), eval(sys.argv[3])
with ResultsStore(path) as store:
    runner.run_cells(tests.cells(), function, store, **options)
"""


def start(path, function, mark="", **options):
    command = [sys.executable, "-c", RUN, str(path), function, repr(options)]
    return subprocess.Popen(command, env={**os.environ, MARK: mark}, stderr=subprocess.PIPE, start_new_session=True)


def marked(mark):
    """Return the living processes that inherited a mark from the runner."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def wait_for(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)


def stored(path):
    with ResultsStore(path) as store:
        return len(store)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_the_runner(tmp_path, number):
    """Runners end at random moments, from the start of their workers on; their results are never damaged."""
    rng = random.Random(int(number))
    for repetition in range(repetitions(2, 12)):
        mark, path = uuid.uuid4().hex, tmp_path / f"{repetition}.sqlite"
        process = start(path, "endless", mark, jobs=2, cells_per_task=1)
        working = repetition % 2 == 0  # else: while the workers start
        wait_for(lambda mark=mark, path=path, working=working: len(marked(mark)) > 2 and (not working or stored(path)))
        time.sleep(rng.random())
        process.send_signal(number)
        end = time.monotonic() + DEADLINE
        while (left := marked(mark)) and time.monotonic() < end:
            time.sleep(0.1)
        for one in left:
            one.kill()
        process.communicate(timeout=60)
        assert left == []
        assert stored(path) < 200


def test_sigterm_stores_what_is_done(tmp_path):
    """Results that have arrived but are not written yet are written before the process ends."""
    path, arrived = tmp_path / "r.sqlite", tmp_path / "arrived.txt"
    script = f"""
runner.BATCH_SECONDS = 3600.0
def watch(result):
    with open({str(arrived)!r}, "a") as file:
        file.write("x")
with ResultsStore(path) as store:
    runner.run_cells(tests.cells(), function, store, watch=watch, **options)
"""
    command = [sys.executable, "-c", RUN.split("with Res")[0] + script, str(path), "endless"]
    process = subprocess.Popen([*command, "{'jobs': 2, 'cells_per_task': 1}"], stderr=subprocess.PIPE)
    wait_for(lambda: arrived.exists() and len(arrived.read_text()) == 8)
    assert stored(path) == 0
    process.terminate()
    error = process.communicate(timeout=60)[1].decode()
    assert process.returncode not in (0, -signal.SIGTERM)
    assert error.count("Traceback") == 1  # that of the script: no thread and no worker adds its own
    assert "TerminatedError" in error
    assert stored(path) == 8


def test_sigterm_in_one_process(tmp_path):
    def terminating(cell):
        if cell.seed == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return short(cell)

    with ResultsStore(tmp_path / "r.sqlite") as store:
        with pytest.raises(TerminatedError):
            run_cells(cells(), terminating, store)
        assert len(store) == 3
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_the_command_line_returns_143(tmp_path, monkeypatch, capsys):
    def terminated(*_, **__):
        raise TerminatedError("terminated")

    monkeypatch.setattr(study_commands, "run_cells", terminated)
    assert cli.main(["run", "heuristics-uds", "--results", str(tmp_path / "r.sqlite")]) == 143
    assert "stopped" in capsys.readouterr().err


def test_bad_sizes_of_tasks(tmp_path):
    with ResultsStore(tmp_path / "r.sqlite") as store, pytest.raises(OptionError, match="cells_per_task"):
        run_cells(cells(), short, store, cells_per_task=0)


def test_work_stops_when_it_is_asked_to():
    with stop_when(lambda: True), pytest.raises(StoppedError):
        stop_if_requested()
    with stop_when(lambda: False):
        stop_if_requested()
    stop_if_requested()
    assert len(run_chunk(short, cells(2))) == 2  # not in a task of a cluster: nobody can abandon it


@pytest.fixture(scope="module")
def cluster():
    """The address of a Dask scheduler with one worker of one thread, as processes of their own."""
    processes = []
    scheduler = start_scheduler(processes)
    start_worker(processes, scheduler)
    yield scheduler
    stop(processes)


def start_scheduler(processes):
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    process = subprocess.Popen([*command, "--host", "127.0.0.1"], stderr=subprocess.PIPE, text=True)
    processes.append(process)
    for line in process.stderr:
        if "Scheduler at:" in line:
            return line.split("Scheduler at:")[1].strip()
    raise AssertionError("the scheduler did not start")


def start_worker(processes, scheduler):
    command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler, "--nthreads", "1", "--no-nanny"]
    processes.append(subprocess.Popen([*command, "--no-dashboard"], stderr=subprocess.DEVNULL))


def stop(processes):
    for process in processes:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


CLIENT = """
import sys
from experiments.engine.cell import Cell
from experiments.engine.runner import run_cells
from experiments.engine.store import ResultsStore
from tests.experiments.engine.test_stopping import marking
settings = {"marks": sys.argv[2], "seconds": float(sys.argv[3]), "checkpoints": sys.argv[4] == "True"}
with ResultsStore(sys.argv[1]) as store:
    cells = [Cell("study", sys.argv[2], "strategy", seed, settings) for seed in range(12)]
    run_cells(cells, marking, store, cluster=sys.argv[5], cells_per_task=4)
"""


@pytest.mark.parametrize("checkpoints", [False, True])
def test_a_cluster_stops_when_its_client_is_killed(tmp_path, cluster, checkpoints):
    """At most the running cell ends; with checkpoints, at most the part of it that runs."""
    for repetition in range(repetitions(1, 12)):
        marks = tmp_path / f"{checkpoints}-{repetition}.txt"
        arguments = [str(tmp_path / f"{repetition}.sqlite"), str(marks), "0.5", str(checkpoints), cluster]
        process = subprocess.Popen([sys.executable, "-c", CLIENT, *arguments])
        wait_for(lambda marks=marks: marks.exists() and marks.read_text().count("\n") >= 2)
        process.kill()
        process.wait()
        at_death = marks.read_text().splitlines()
        time.sleep(6)
        after = marks.read_text().splitlines()
        cell = at_death[-1].split(".")[0]
        assert all(mark.split(".")[0] == cell for mark in after[len(at_death) :])
        if checkpoints:
            assert len(after) <= len(at_death) + 2
        time.sleep(1)
        assert marks.read_text().splitlines() == after


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_dies_is_named(tmp_path):
    for repetition in range(repetitions(1, 12)):
        processes = []
        path = tmp_path / f"{repetition}.sqlite"
        try:
            address = start_scheduler(processes)
            start_worker(processes, address)
            client = start(path, "short", cluster=address, cells_per_task=1)
            wait_for(lambda path=path: stored(path) > 0)
            processes[0].kill()
            error = client.communicate(timeout=60)[1].decode()
        finally:
            stop(processes)
        assert client.returncode == 1
        assert error.count("Traceback") == 1  # that of the script, which the command line replaces by the message
        last = error.strip().splitlines()[-1]
        assert last == (
            f"experiments.errors.ClusterError: the Dask scheduler at {address} is gone. {stored(path)} of 200 cells "
            f"are stored in {path}; repeat the command with a running scheduler to resume"
        )
        assert 0 < stored(path) < 200
    with ResultsStore(path) as store:
        assert run_cells(cells(), short, store) < 200
        assert len(store) == 200
    assert issubclass(ClusterError, ConnectionError)
