"""The arrays of problems in the form that the compiled passes take."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from selectenv.evaluation.exact_returns import ExactReturns
from selectenv.kernels.tabular.model import ELIMINATION_LIMIT, Chain, Model
from selectenv.kernels.tabular.packed_tables import Tables, pack
from selectenv.learners.imputed_reward import imputed_reward
from selectenv.learners.tabular.exact import ExactLearner
from selectenv.options import REVEALED_MINIMUM
from selectenv.problem import SelectionProblem

NOTHING = np.empty(0)
NO_MODEL = Model(*(False if name == "acyclic" else NOTHING for name in Model._fields))  # type: ignore[arg-type]
NO_CHAIN = Chain(*(NOTHING for _ in Chain._fields))  # type: ignore[arg-type]


def is_compiled(problem: SelectionProblem) -> bool:
    """Return whether the compiled passes can refit the learner of a problem: exactly, in a small tabular model."""
    small = problem.n_states <= ELIMINATION_LIMIT
    return small and type(problem.learner) is ExactLearner and problem.dataset.has_rewards


def has_compiled_returns(problem: SelectionProblem) -> bool:
    """Return whether the compiled passes can also evaluate the labels, within a moment."""
    engine, data = problem.evaluator.engine, problem.dataset
    if not is_compiled(problem) or type(engine) is not ExactReturns:
        return False
    same = (engine.world.n_states, engine.world.n_actions) == (data.n_states, data.n_actions)
    return same and engine.is_quick


def tables_of(problem: SelectionProblem) -> Tables:
    """Return the tables of one problem; what the compiled passes cannot use is left empty."""
    data, learner = problem.dataset, problem.learner
    models, chain = [NO_MODEL, NO_MODEL, NO_MODEL], NO_CHAIN
    predecessors: tuple[Any, ...] = (NOTHING, NOTHING, NOTHING)
    starts, behaviour = [NOTHING, NOTHING], NOTHING
    imputed, minimum, horizon, one_sweep = 0.0, False, 0, False
    if is_compiled(problem):
        assert isinstance(learner, ExactLearner)
        imputed = imputed_reward(learner.impute, data, data.all_rewards, np.zeros(data.n_states, bool))
        minimum = learner.impute == REVEALED_MINIMUM
        models[:2] = learner.model(data, data.all_rewards, imputed), data.empirical_model()
        predecessors, starts[0], behaviour = data.predecessors, data.start, data.action_frequencies
    if has_compiled_returns(problem):
        engine = problem.evaluator.engine
        assert isinstance(engine, ExactReturns)
        models[2], chain, starts[1] = engine.world.model, engine.world.chain, engine.world.start
        horizon, one_sweep = engine.world.horizon, engine.one_sweep
    found = data.reward_summary(data.all_rewards)
    summary = [found.mean, found.by_action, found.smallest, found.largest_magnitude]
    return pack(
        [data.n_actions, learner.rule == "adapted", minimum, problem.has_performance, horizon, one_sweep],
        [learner.gamma, imputed, problem.evaluator.discount],
        models,
        [*chain, *predecessors[:2]],
        [*starts, behaviour, *summary, predecessors[2]],
        [data.labelable],
    )


def repeated(tables: Tables, count: int) -> Tables:
    """Return the tables of ``count`` problems that are all the same."""
    return Tables(*(np.repeat(table, count, axis=0) for table in tables))  # type: ignore[arg-type]


def put_row(stack: Tables, row: int, tables: Tables) -> Tables:
    """Return tables of several problems with one of them replaced; rows grow with the largest problem."""

    def put(many: NDArray[Any], one: NDArray[Any]) -> NDArray[Any]:
        more = one.shape[1] - many.shape[1]
        if more > 0:
            many = np.pad(many, ((0, 0), (0, more)))
        many[row, : one.shape[1]] = one[0]
        return many

    return Tables(
        put(stack.places, tables.places),
        put(stack.whole, tables.whole),
        put(stack.reals, tables.reals),
        put(stack.marks, tables.marks),
    )
