"""Large rewards: accepted ones never give infinite or undefined performances, larger ones are rejected by name."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import selectenv
from selectenv.checks import LARGEST_REWARD
from selectenv.errors import DatasetError, OptionError, WorldError

TOO_LARGE = [2 * LARGEST_REWARD, -2 * LARGEST_REWARD, 1e307, np.inf, -np.inf, np.nan]
magnitudes = st.floats(-LARGEST_REWARD, LARGEST_REWARD, allow_subnormal=False)


def make_world(reward, horizon=50):
    """Three states that lead back to each other, with two actions each, and rewards [6]."""
    return selectenv.from_outcomes(
        "large",
        state=[0, 0, 1, 1, 2, 2],
        action=[0, 1] * 3,
        probability=np.ones(6),
        next_state=[1, 2, 2, 0, 0, 0],
        reward=reward,
        terminated=[0, 0, 0, 0, 0, 1],
        start=[1.0],
        horizon=horizon,
    )


@given(
    st.lists(magnitudes, min_size=6, max_size=6),
    st.sampled_from(["uds", "adapted"]),
    st.sampled_from(["exact", "sampled"]),
    st.sampled_from([0.0, 0.99, 1 - 1e-9, float(np.nextafter(1, 0))]),
    st.sampled_from([1.0, 0.9]),
    magnitudes,
    st.sampled_from([1, 50, 100_000]),
)
def test_no_accepted_reward_gives_an_infinite_or_undefined_performance(
    reward, learner, solver, gamma, discount, impute, horizon
):
    problem = selectenv.make_problem(
        make_world(reward, horizon),
        dataset_size=100,
        learner=learner,
        solver=solver,
        gamma=gamma,
        discount=discount,
        impute=impute if learner == "uds" else 0,
        cache=False,
    )
    masks = np.arange(8)[:, None] >> np.arange(3) & 1 == 1
    assert np.isfinite(problem.performance_many(masks)).all()
    for mask in masks:
        assert np.isfinite(problem.learn(mask).values).all()


@pytest.mark.parametrize("wrong", TOO_LARGE)
def test_larger_rewards_are_rejected_by_name(wrong):
    with pytest.raises(WorldError, match="rewards"):
        make_world([0.0, 0.0, 0.0, 0.0, 0.0, wrong])
    with pytest.raises(DatasetError, match="rewards"):
        selectenv.from_arrays([0, 1], [0, 0], [1, 0], [False, True], [0.0, wrong])
    with pytest.raises(OptionError, match="impute"):
        selectenv.make_problem("Graph", dataset_size=100, impute=wrong)
