"""The matrices along which states exchange messages: forward and backward."""

import numpy as np
import pytest

import selectenv
from agents.learned.moves import MOVES, dense_moves
from selectenv.random_problems import RandomProblems


def by_name(dataset):
    return dict(zip(MOVES, dense_moves(dataset), strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_forward_rows_are_probabilities_and_backward_rows_shares(seed):
    data = RandomProblems(padding=40)(np.random.default_rng(seed)).dataset
    found = by_name(data)
    entered = np.isin(np.arange(data.n_states), data.next_state)
    for name, matrix in found.items():
        assert matrix.min() >= 0
        rows = matrix.sum(axis=1)
        if name.startswith("before"):
            np.testing.assert_allclose(rows[rows > 0], 1, atol=1e-5)
            assert (rows[~entered] == 0).all()
            np.testing.assert_array_equal(rows > 0, found[name.removeprefix("before ")].sum(axis=0) > 0)
        else:
            assert (rows <= 1 + 1e-5).all()
            assert (rows[~data.labelable] == 0).all()


def test_random_moves_count_every_action_once():
    data = selectenv.make_problem("CliffWalk", dataset_size=20_000).dataset
    start = int(data.start.argmax())
    (row,) = data.numbers([25])  # above the cliff
    random, favoured, avoided = (by_name(data)[name][row] for name in ("random", "favoured", "avoided"))
    np.testing.assert_allclose(np.sort(random[random > 0]), [0.25] * 4)
    assert random[start] == pytest.approx(0.25)  # down the cliff, back to the start
    assert favoured[start] == 0
    assert avoided[start] > 0.25


def test_backward_moves_reverse_visits():
    data = selectenv.make_problem("Tree", dataset_size=20_000).dataset
    before = by_name(data)["before random"]
    child, parent = data.numbers([7, 3])
    assert before[child].argmax() == parent
    assert before[child].sum() == pytest.approx(1)
