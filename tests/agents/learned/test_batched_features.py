"""Features of many episodes at once are those of each of them, bit by bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import selectenv
from agents.learned.batched_features import BatchedFeatures, DataRow
from agents.learned.feature_context import FeatureContext
from agents.learned.state_features import NAMES
from selectenv.kernels.tabular import row_features
from selectenv.kernels.tabular.row_features import rank_rows
from tests.selectenv.vector_twins import make_native

SMALL = {"dataset_size": 1_000}


def alone(envs, obs, info, number, without):
    """Return the features of one environment, computed as for a single one."""
    context = FeatureContext.of(envs.members[number].view(), without)
    return context.features({name: array[number] for name, array in obs.items()}, {"action_mask": info[number]})


@pytest.mark.parametrize(
    ("world", "options"),
    [
        ("Tree", {"budget": (0.1, 0.5)}),
        ("CliffWalk", {"learner": "adapted"}),
        ("FrozenLake", {"dataset_seed": None, "dataset_size": 100}),
        ("Random", {"padding": 40, "largest": 40, "dataset_size": None}),
    ],
)
@settings(max_examples=5)
@given(seed=st.integers(0, 1000), without=st.sampled_from([(), ("value", "seen"), ("states", "open", "adapted")]))
def test_features_of_a_batch(world, options, seed, without):
    options = {name: value for name, value in {**SMALL, **options}.items() if value is not None}
    envs = make_native(selectenv.env_id(world), 4, reward_mode="marginal", **options)
    obs, _ = envs.reset(seed=seed)
    own = envs.source is not None
    rows = [
        DataRow.of(problem.dataset.without_rewards, problem.learner.rule == "adapted", without)
        for problem in envs.get_attr("problem")
    ]
    features = BatchedFeatures(rows[:1] * (4 if own else 1), without)
    for number in range(4 if own else 0):
        features.replace(number, rows[number])
    rng, budgets = np.random.default_rng(seed), np.array(envs.get_attr("budget"))
    for _ in range(min(budgets)):
        masks = envs.episodes.open.copy()
        found = features.of(obs, masks, budgets)
        assert found.shape == (4, masks.shape[1], len(NAMES))
        wanted = [alone(envs, obs, masks, number, without) for number in range(4)]
        np.testing.assert_array_equal(found, np.stack(wanted))
        some = np.array([2, 0])
        part = {name: array[some] for name, array in obs.items()}
        np.testing.assert_array_equal(features.of(part, masks[some], budgets[some], some), found[some])
        obs = envs.step(rng.integers(masks.shape[1], size=4))[0]


@pytest.mark.parametrize("short", [0, 128])
@given(seed=st.integers(0, 1000), n=st.integers(1, 12))
def test_ranks_count_smaller_values_and_half_of_the_ties(seed, n, short):
    rng = np.random.default_rng(seed)
    values, among = rng.integers(0, 4, (3, n)) / 3, rng.random((3, n)) < 0.7
    ranks, limit = np.empty((3, n)), row_features.SHORT
    row_features.SHORT = short
    try:
        (rank_rows if short == limit else rank_rows.py_func)(values, among, ranks)
    finally:
        row_features.SHORT = limit
    for row, mine, rank in zip(values, among, ranks, strict=True):
        others = max(mine.sum() - 1, 1)
        for i in range(n):
            smaller, ties = (row[mine] < row[i]).sum(), (row[mine] == row[i]).sum() - 1
            assert rank[i] == (pytest.approx((smaller + ties / 2) / others) if mine[i] else 0)
