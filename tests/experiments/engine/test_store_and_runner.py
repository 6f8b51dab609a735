"""Results are never lost and never computed twice: kills, locks, damaged files, several processes, a Dask cluster."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

from experiments.cli import main as cli
from experiments.engine.cell import Cell, Result
from experiments.engine.runner import run_cells
from experiments.engine.store import FORMAT, ResultsStore
from experiments.errors import ClusterError, StoreError, StoreInUseError
from experiments.studies import find_studies
from selectenv.errors import OptionError
from selectenv.streams import generator


def quick(cell):
    """A cell's result: a function of its content."""
    return [{"value": float(generator(cell.seed, cell.world).random())}]


def slow(cell):
    time.sleep(0.05)
    return quick(cell)


def cells(count=60):
    return [Cell("study", "world", "strategy", seed, {"a": 1}) for seed in range(count)]


def content(path):
    with ResultsStore(path) as store:
        return [(result.cell.key, result.records) for result in store.results(cells())]


def test_cells_are_identified_by_their_content():
    assert Cell("s", "w", "x", 0, {"a": 1, "b": 2}).key == Cell("s", "w", "x", 0, {"b": 2, "a": 1}).key
    different = {Cell("s", "w", "x", 0).key, Cell("s", "w", "x", 1).key, Cell("s", "w", "x", 0, {"a": 1}).key}
    assert len(different) == 3


def test_a_finished_run_does_nothing(tmp_path):
    with ResultsStore(tmp_path / "r.sqlite") as store:
        assert run_cells(cells(), quick, store) == 60
        assert run_cells(cells(), quick, store) == 0
        assert run_cells([*cells(), Cell("study", "other", "strategy", 0)], quick, store) == 1


def test_the_same_results_in_one_process_and_in_two(tmp_path):
    for jobs in (1, 2):
        with ResultsStore(tmp_path / f"{jobs}.sqlite") as store:
            run_cells(cells(), quick, store, jobs=jobs)
    assert content(tmp_path / "1.sqlite") == content(tmp_path / "2.sqlite")
    assert len(content(tmp_path / "1.sqlite")) == 60


def test_what_was_done_before_an_error_is_kept(tmp_path):
    def failing(cell):
        if cell.seed == 40:
            raise KeyboardInterrupt
        return quick(cell)

    with ResultsStore(tmp_path / "r.sqlite") as store:
        with pytest.raises(KeyboardInterrupt):
            run_cells(cells(), failing, store)
        assert 30 <= len(store.results(cells())) < 60
        run_cells(cells(), quick, store)
        assert len(store.results(cells())) == 60


RUN = """
import sys
from experiments.engine import runner
runner.BATCH_SECONDS = 0.0
from experiments.engine.store import ResultsStore
from tests.experiments.engine.test_store_and_runner import cells, slow
with ResultsStore(sys.argv[1]) as store:
    runner.run_cells(cells(), slow, store, jobs=int(sys.argv[2]), cells_per_task=2)
"""


def wait_for(condition, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_killed_run_resumes_where_it_stopped(tmp_path, jobs):
    path, rng = tmp_path / "killed.sqlite", random.Random(0)
    counts = []
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", RUN, str(path), jobs], start_new_session=True)
        wait_for(lambda: len(content(path)) > (counts[-1] if counts else 0))
        time.sleep(rng.random() / 2)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        counts.append(len(content(path)))
    assert 0 < counts[0] < counts[1] < counts[2]
    subprocess.run([sys.executable, "-c", RUN, str(path), jobs], check=True)
    with ResultsStore(tmp_path / "whole.sqlite") as store:
        run_cells(cells(), quick, store)
    assert content(path) == content(tmp_path / "whole.sqlite")


def test_a_study_killed_at_random_moments_ends_as_an_undisturbed_one(tmp_path):
    """The command itself, on a corner of a real study, killed three times while it works."""
    rng = random.Random(1)
    study = ["run", "heuristics-uds", "--only", "CliffWalk", "--seeds", "60"]

    def stored(path):
        with ResultsStore(path) as store:
            cells = find_studies()["heuristics-uds"].cells(60, "exact")
            return [(result.cell.key, result.records) for result in store.results(cells)]

    path, counts = tmp_path / "killed.sqlite", [0]
    command = [sys.executable, "-m", "experiments", *study, "--results", str(path), "--jobs", "2"]
    for _ in range(3):
        process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
        wait_for(lambda running=process: len(stored(path)) > counts[-1] or running.poll() is not None)
        time.sleep(rng.random())
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        counts.append(len(stored(path)))
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert cli.main([*study, "--results", str(tmp_path / "whole.sqlite")]) == 0
    assert len(stored(path)) == 420
    assert stored(path) == stored(tmp_path / "whole.sqlite")


def test_one_run_at_a_time(tmp_path):
    with ResultsStore(tmp_path / "r.sqlite") as one, ResultsStore(tmp_path / "r.sqlite") as two, one.writing():
        with pytest.raises(StoreInUseError, match="another run"):
            run_cells(cells(), quick, two)
        assert two.results(cells()) == []  # reading is free


def test_files_that_are_not_results(tmp_path):
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"not a database at all, but long enough to be one" * 50)
    with pytest.raises(StoreError, match="damaged or not a results file"):
        ResultsStore(damaged)
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as database:
        database.execute("CREATE TABLE other (x)")
    database.close()
    with pytest.raises(StoreError, match="not a results store"):
        ResultsStore(foreign)
    newer = tmp_path / "newer.sqlite"
    ResultsStore(newer).close()
    with sqlite3.connect(newer) as database:
        database.execute(f"PRAGMA user_version = {FORMAT + 1}")
    database.close()
    with pytest.raises(StoreError, match="newer version"):
        ResultsStore(newer)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="cannot be opened"):
        ResultsStore(tmp_path / "file" / "r.sqlite")


def test_a_full_disk_loses_nothing(tmp_path):
    with ResultsStore(tmp_path / "r.sqlite") as store:
        run_cells(cells(10), quick, store)
        store._database.execute("PRAGMA max_page_count = 1")
        big = [Result(Cell("s", "w", "x", seed), [{"value": "x" * 5000}], 0.0) for seed in range(50)]
        with pytest.raises(StoreError, match="what was written before is safe"):
            store.add(big)
        assert len(store.results(cells(10))) == 10


def test_bad_numbers_of_jobs(tmp_path):
    with ResultsStore(tmp_path / "r.sqlite") as store, pytest.raises(OptionError, match="jobs"):
        run_cells(cells(), quick, store, jobs=0)


@pytest.mark.filterwarnings("ignore")  # Dask's own, when a worker is killed
def test_a_dask_cluster_that_loses_a_worker(tmp_path):
    """A real scheduler with two workers; one is killed during the run, and every cell is there once."""
    from dask.distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        pids = [worker.pid for worker in cluster.workers.values()]
        command = [sys.executable, "-c", RUN.replace("jobs=int(sys.argv[2])", "cluster=sys.argv[2]")]
        process = subprocess.Popen([*command, str(tmp_path / "r.sqlite"), cluster.scheduler_address])
        wait_for(lambda: 0 < len(content(tmp_path / "r.sqlite")) < 60)
        os.kill(pids[0], signal.SIGKILL)
        assert process.wait(timeout=120) == 0
    with ResultsStore(tmp_path / "whole.sqlite") as store:
        run_cells(cells(), quick, store)
    assert content(tmp_path / "r.sqlite") == content(tmp_path / "whole.sqlite")
    assert len({key for key, _ in content(tmp_path / "r.sqlite")}) == 60


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_does_not_answer(tmp_path, monkeypatch):
    with ResultsStore(tmp_path / "r.sqlite") as store:
        for address in ("tcp://127.0.0.1:9", "nonsense"):
            with pytest.raises(ClusterError, match="no Dask scheduler"):
                run_cells(cells(2), quick, store, cluster=address)
        assert store.results(cells()) == []


def test_streams_depend_on_the_cell_alone():
    values = [quick(cell)[0]["value"] for cell in cells(20)]
    assert len(set(values)) == 20
    assert values == [quick(cell)[0]["value"] for cell in cells(20)]
    assert 0 <= min(values) < np.max(values) < 1
