"""The thread pool: every item once, whatever the number of threads; one thread in worker processes."""

import multiprocessing

import numpy as np
import pytest

import selectenv
from selectenv.kernels.threads import in_blocks, in_chunks, thread_count


@pytest.mark.parametrize("threads", ["1", "2", "3"])
@pytest.mark.parametrize(("items", "chunk"), [(0, 4), (1, 4), (10, 3), (12, 4)])
def test_every_item_is_worked_on_once(monkeypatch, threads, items, chunk):
    monkeypatch.setenv("SELECTENV_THREADS", threads)
    seen = np.zeros(items, int)

    def work(first, last):
        assert 0 < last - first <= chunk
        seen[first:last] += 1

    in_chunks(work, items, chunk)
    assert (seen == 1).all()


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(("items", "fewest"), [(1, 4), (10, 3), (12, 4), (100, 1)])
def test_every_item_is_in_one_block(threads, items, fewest):
    seen, blocks = np.zeros(items, int), []

    def work(first, last):
        seen[first:last] += 1
        blocks.append((first, last))

    in_blocks(work, items, fewest, threads)
    assert (seen == 1).all()
    assert len(blocks) <= min(threads, max(1, items // fewest))


@pytest.mark.parametrize("failing", [0, 5])
def test_errors_in_blocks_are_raised_after_all_have_ended(failing):
    """Here in the calling thread, there in another one; the pool works on."""
    seen = []

    def work(first, last):
        if first <= failing < last:
            raise ValueError(f"block of item {failing}")
        seen.append(first)

    for _ in range(2):
        with pytest.raises(ValueError, match=f"block of item {failing}"):
            in_blocks(work, 6, 1, 2)
    assert len(seen) == 2


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch):
    problem = selectenv.make_problem("CliffWalk", dataset_size=5000)
    masks = np.random.default_rng(0).random((1000, problem.n_states)) < 0.5
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("SELECTENV_THREADS", threads)
        found.append(problem.performance_many(masks))
    np.testing.assert_array_equal(*found)


def _in_a_worker(queue):
    problem = selectenv.make_problem("Graph", dataset_size=500)
    masks = np.random.default_rng(0).random((5000, 15)) < 0.5
    queue.put((thread_count(), problem.performance_many(masks).sum()))


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_worker_process_uses_one_thread_and_a_pool_survives_a_fork(method):
    problem = selectenv.make_problem("Graph", dataset_size=500)
    masks = np.random.default_rng(0).random((5000, 15)) < 0.5
    expected = problem.performance_many(masks).sum()
    context = multiprocessing.get_context(method)
    queue = context.SimpleQueue()
    process = context.Process(target=_in_a_worker, args=(queue,))
    process.start()
    threads, found = queue.get()
    process.join()
    assert (threads, found) == (1, expected)
