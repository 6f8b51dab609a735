"""Valid calls of everything that `selectenv` offers."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import gymnasium as gym
import numpy as np

import selectenv
from selectenv.datasets import collect, dataset_spec, load, save
from selectenv.evaluation import Calls, Evaluator, ExactReturns, RolloutReturns
from selectenv.factory import make_random_env
from selectenv.learners.registry import LEARNERS
from selectenv.policies import PolicyList, TablePolicy
from selectenv.view import SelectionView
from selectenv.worlds import WORLDS
from tests.odd_arguments import small_objects as small
from tests.odd_arguments.judge import Call


def constants(**values: Any) -> dict[str, Callable[[], Any]]:
    """Return arguments that are made anew by returning the same value."""
    return {name: lambda value=value: value for name, value in values.items()}  # type: ignore[misc]


LONG = 10_000
"""Nobody asks a test to play episodes longer than this."""


def _use(problem: selectenv.SelectionProblem) -> Any:
    """Use a problem as its first user would."""
    problem.learn([0])
    return problem.performance([0, 1]) if problem.has_performance else problem.mask([0])


def _play(env: Any) -> Any:
    """Play the first steps of an episode."""
    env.reset(seed=0)
    return env.step(0)[1]


def make_problem(**options: Any) -> Any:
    return _use(selectenv.make_problem(**options))


def make_env(**options: Any) -> Any:
    return _play(selectenv.make_env(**options))


def gym_make(**options: Any) -> Any:
    return _play(gym.make("RewardSelection-Tree-v0", **options))


def make_random(**options: Any) -> Any:
    return _play(make_random_env(**options))


def reward_selection_env(**options: Any) -> Any:
    return _play(selectenv.RewardSelectionEnv(**options))


DATA = constants(
    world="Tree",
    depth=3,
    dataset="train",
    dataset_seed=0,
    dataset_size=300,
    expert_share=0.5,
    mixture="all",
    expert="published",
    cache=False,
)
LEARNER = constants(learner="uds", solver="exact", impute=0, unseen="zero", gamma=0.99)
EPISODE = constants(
    budget=3,
    reward_mode="marginal",
    phase="train",
    initial_ratio=0.1,
    labels_per_refit=1,
    occupancy="normalised",
    exploit="best",
    render_mode=None,
)
SAMPLED = constants(
    world="Tree",
    depth=2,
    dataset_size=50,
    cache=False,
    solver="sampled",
    learner_seed=0,
    passes=2,
    evaluator="rollout",
    rollouts=10,
    evaluation_seed=0,
    discount=0.9,
    impute="min",
)
MAKING = [
    Call("make_problem", make_problem, DATA | LEARNER | constants(evaluator="exact", discount=1.0, scale=None)),
    Call("make_problem, sampled", make_problem, SAMPLED),
    Call(
        "make_problem, own data", make_problem, {"world": small.world, "dataset": small.dataset, "scale": lambda: None}
    ),
    Call(
        "make_problem, data alone",
        make_problem,
        constants(world=None)
        | {"dataset": small.dataset_file}
        | constants(updates=None, learner_runs=1, checkpoints=None),
    ),
    Call("make_env", make_env, {**DATA, **EPISODE}),
    Call("gym.make", gym_make, DATA | EPISODE, True),
    Call(
        "RewardSelection-Random",
        make_random,
        constants(budget=0.3, padding=12, smallest=8, largest=10, kinds=("tree",), learner="uds", reward_mode="final"),
    ),
    Call("RewardSelectionEnv", reward_selection_env, {"problem": small.problem, **EPISODE}),
]


# Environments


def reset(env: Any, seed: Any, options: Any) -> Any:
    env.reset(seed=seed, options=options)
    return env.step(1)[1]


def step(env: Any, action: Any) -> Any:
    found = env.step(action)[1]
    if env.labels_spent < env.budget:
        env.step(0)
    return found


def label_many(env: Any, actions: Any) -> Any:
    return env.label_many(actions)[1]


def environment(make: Callable[[], Any]) -> Any:
    """Use everything that an environment has, whatever its state."""
    env = make()
    env.action_masks(), env.labels, env.labels_to_refit, env.twin(), str(env)
    env.render()
    env.view()
    return env.step(0)[1]


ENV = {"env": small.env}
STEPS = [
    Call("env.reset", reset, constants(seed=0, options=None), True, ENV),
    Call("env.step", step, {"action": lambda: 1}, fixed=ENV),
    Call("env.label_many", label_many, {"actions": lambda: [0, 1]}, fixed=ENV),
]
STATES = {
    "closed": small.closed_env,
    "finished": small.finished_env,
    "without reset": small.fresh_env,
    "rendered": lambda: small.env(render_mode="ansi"),
    "in the test phase": lambda: small.env(phase="test"),
}

# Problems and datasets


def selection_problem(**parts: Any) -> Any:
    return _use(selectenv.SelectionProblem(**parts))


def problem_method(name: str) -> Callable[..., Any]:
    return lambda problem, **arguments: getattr(problem, name)(**arguments)


def with_calls(problem: Any, calls: Any) -> Any:
    return problem.with_calls(calls).performance([0])


def columns() -> dict[str, Callable[[], Any]]:
    """Return the columns of a dataset, as arguments."""
    names = [f.name for f in fields(selectenv.OfflineDataset) if f.name not in ("_shared", "images")]
    return {name: lambda name=name: getattr(small.dataset(), name) for name in names}  # type: ignore[misc]


def offline_dataset(**given: Any) -> Any:
    dataset = selectenv.OfflineDataset(**given)
    repr(dataset), dataset.fingerprint
    return make_problem(dataset=dataset)


def dataset_method(name: str) -> Callable[..., Any]:
    return lambda dataset, **arguments: getattr(dataset, name)(**arguments)


def empirical_model(dataset: Any, **arguments: Any) -> Any:
    return dataset.empirical_model(**arguments)


def from_arrays(**given: Any) -> Any:
    return make_problem(dataset=selectenv.from_arrays(**given))


def save_and_load(dataset: Any, path: Any) -> Any:
    return load(save(dataset, path))


def collected(**options: Any) -> Any:
    return collect(options["world"], dataset_spec(**options))


PROBLEM: dict[str, Callable[[], Any]] = {"problem": small.problem}
DATASET: dict[str, Callable[[], Any]] = {"dataset": small.dataset}
PROBLEMS = [
    Call(
        "SelectionProblem",
        selection_problem,
        {
            "dataset": small.dataset,
            "learner": lambda: small.problem().learner,
            "evaluator": lambda: Evaluator(ExactReturns(small.world())),
            "layout": lambda: None,
            "budget_states": lambda: None,
        },
    ),
    *(
        Call(f"problem.{name}", problem_method(name), {"labels": lambda: [0, 1]}, fixed=PROBLEM)
        for name in ("mask", "learn", "performance", "score")
    ),
    Call(
        "problem.performance_many",
        problem_method("performance_many"),
        {"masks": lambda: np.ones((2, 7), bool)},
        fixed=PROBLEM,
    ),
    Call(
        "problem.performance_with",
        problem_method("performance_with"),
        {"labels": lambda: [0, 1], "candidates": lambda: np.array([2, 3])},
        fixed=PROBLEM,
    ),
    Call("problem.actions", problem_method("actions"), {"ids": lambda: [0, 1]}, fixed=PROBLEM),
    Call("problem.with_calls", with_calls, {"calls": lambda: None}, fixed=PROBLEM),
    Call("OfflineDataset", offline_dataset, columns()),
    Call("dataset.reveal", dataset_method("reveal"), {"labels": lambda: np.ones(7, bool)}, fixed=DATASET),
    Call("dataset.numbers", dataset_method("numbers"), {"ids": lambda: [0, 1]}, fixed=DATASET),
    Call("dataset.transitions_of", dataset_method("transitions_of"), {"states": lambda: np.array([1])}, fixed=DATASET),
    Call(
        "dataset.states_with_rewards",
        dataset_method("states_with_rewards"),
        {"rewards": lambda: np.zeros(small.SIZE)},
        fixed=DATASET,
    ),
    Call(
        "dataset.empirical_model",
        empirical_model,
        {"rewards": lambda: np.zeros(small.SIZE), **constants(exclude_unseen=False, unknown=0.0)},
        fixed=DATASET,
    ),
    Call(
        "from_arrays",
        from_arrays,
        {
            "states": lambda: [0, 1, 2, 0],
            "actions": lambda: [0, 1, 0, 1],
            "next_states": lambda: [1, 2, 0, 1],
            "terminated": lambda: [False, False, True, False],
            "rewards": lambda: [0.0, 1.0, 2.0, -1.0],
            "truncated": lambda: [False, False, False, True],
            **constants(n_actions=None, world=None),
        },
    ),
    Call("datasets.save", save_and_load, {"dataset": small.dataset, "path": lambda: small.folder() / "again.npz"}),
    Call("datasets.load", load, {"path": small.dataset_file}),
    Call(
        "datasets.collect",
        collected,
        {
            "world": small.world,
            **constants(expert_share=0.5, mixture="all", expert="published", size=50, seed=0),
        },
    ),
]

# Worlds


def outcomes() -> dict[str, Callable[[], Any]]:
    """Return the arguments of `from_outcomes`."""
    world = small.world()
    return {
        "name": lambda: "Odd",
        "state": lambda: world.ids[world.state],
        "action": lambda: world.action,
        "probability": lambda: world.probability,
        "next_state": lambda: np.where(world.next_state < 0, 0, world.ids[world.next_state]),
        "reward": lambda: world.reward,
        "terminated": lambda: world.next_state < 0,
        "start": lambda: world.start,
        **constants(horizon=None, n_actions=None, layout=None, expert=None),
    }


def _use_world(world: Any) -> Any:
    str(world.fingerprint)
    if world.horizon > LONG:
        return None
    world.best_return(), world.worst_return()
    return make_problem(world=world, dataset_size=60, cache=False)


def from_outcomes(**given: Any) -> Any:
    return _use_world(selectenv.from_outcomes(**given))


def from_toy_text(**given: Any) -> Any:
    return _use_world(selectenv.from_toy_text(**given))


def tabular_world(**given: Any) -> Any:
    return _use_world(selectenv.TabularWorld(**given))


def best_return(world: Any, discount: Any) -> Any:
    return world.best_return(discount) + world.worst_return(discount)


def register_world(name: Any, defaults: Any, make: Any) -> Any:
    before = dict(gym.registry)
    try:
        selectenv.register_world(name, defaults)(make)
        return make_env(world=name, dataset_size=60, cache=False, budget=2)
    finally:
        for new in set(gym.registry) - set(before):
            del gym.registry[new]
            WORLDS._rows.pop(new.removeprefix("RewardSelection-").removesuffix("-v0"), None)


def world_defaults(**given: Any) -> Any:
    return register_world("OddWorld", selectenv.WorldDefaults(**given), small.world)


class OwnLearner:
    """A learner of somebody's own."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer

    def fit(self, dataset: Any, rewards: Any) -> Any:
        if self.answer is not None:
            return self.answer
        return TablePolicy(np.full((dataset.n_states, dataset.n_actions), 1 / dataset.n_actions))


def register_learner(name: Any, factory: Any) -> Any:
    try:
        selectenv.register_learner(name)(factory)
        return make_problem(world="Tree", depth=3, dataset_size=60, cache=False, learner=name)
    finally:
        if isinstance(name, str) and name.startswith("odd"):
            LEARNERS._rows.pop(name, None)


def own_learner(answer: Any) -> Any:
    problem = selectenv.SelectionProblem(small.dataset(), OwnLearner(answer), Evaluator(ExactReturns(small.world())))
    problem.learn([0]).table, problem.learn([0]).values
    return _use(problem)


def look_up(name: Any) -> Any:
    name in WORLDS, WORLDS.get(name)
    return WORLDS[name]


WORLD_FIELDS = [f.name for f in fields(selectenv.TabularWorld)]
WORLD_CALLS = [
    Call("from_outcomes", from_outcomes, outcomes()),
    Call(
        "from_toy_text",
        from_toy_text,
        {"env": small.toy_text_env, **constants(name=None, horizon=None, layout=None, expert=None)},
    ),
    Call(
        "TabularWorld",
        tabular_world,
        {name: lambda name=name: getattr(small.world(), name) for name in WORLD_FIELDS},  # type: ignore[misc]
    ),
    Call("world.best_return", best_return, {"discount": lambda: 1.0}, fixed={"world": small.world}),
    Call(
        "register_world",
        register_world,
        {"name": lambda: "OddWorld", "defaults": lambda: None, "make": lambda: small.world},
    ),
    Call(
        "WorldDefaults",
        world_defaults,
        {f.name: lambda f=f: getattr(selectenv.WorldDefaults(), f.name) for f in fields(selectenv.WorldDefaults)},  # type: ignore[misc]
    ),
    Call("register_learner", register_learner, {"name": lambda: "odd-learner", "factory": lambda: OwnLearner}),
    Call("a learner's answer", own_learner, {"answer": lambda: None}),
    Call("WORLDS", look_up, {"name": lambda: "Tree"}),
    Call("env_id", selectenv.env_id, {"world": lambda: "Tree"}),
]

# Policies, evaluators, results, views


def table_policy(table: Any) -> Any:
    return small.problem().evaluator.evaluate(TablePolicy(table))


def evaluate(evaluator: Any, policy: Any, discount: Any) -> Any:
    return evaluator.evaluate(policy, discount)


def evaluator(**given: Any) -> Any:
    made = Evaluator(**given)
    str((made.available, made.calls))
    return made.evaluate(small.problem().learn([0]).policy)


def returns(engine: Any, policies: Any, discount: Any) -> Any:
    return Evaluator(engine).returns(policies, discount)


def rollout_returns(**given: Any) -> Any:
    return Evaluator(RolloutReturns(**given)).evaluate(small.problem().learn([0]).policy)


def fit_result(**given: Any) -> Any:
    result = selectenv.FitResult(**given)
    str((result.values, result.table, result.batch, result.q))
    return own_learner(result)


def view(**given: Any) -> Any:
    shown = SelectionView(**given)
    return shown.rewards, shown.labels_to_choose


def reveal(transitions: Any, rewards: Any) -> Any:
    small.env().view().reveal(transitions, rewards)


def uniform_table() -> Any:
    return np.full((7, 2), 0.5)


def exact_returns() -> Any:
    return ExactReturns(small.world())


POLICIES = [
    Call("TablePolicy", table_policy, {"table": uniform_table}),
    Call(
        "TablePolicy.probabilities",
        TablePolicy(np.full((7, 2), 0.5)).probabilities,
        {"states": lambda: np.arange(7), "observations": lambda: None},
    ),
    Call(
        "evaluator.evaluate",
        evaluate,
        {"policy": lambda: TablePolicy(uniform_table()), "discount": lambda: None},
        fixed={"evaluator": lambda: small.problem().evaluator},
    ),
    Call("Evaluator", evaluator, {"engine": exact_returns, **constants(discount=1.0, counts=None, locked=False)}),
    Call("evaluator.count", Evaluator(None).count, constants(asked=1, disclosed=1, computed=1, uncounted=0)),
    Call("Calls", Calls, constants(asked=0, disclosed=0, computed=0, uncounted=0)),
    Call(
        "evaluator.returns",
        returns,
        {
            "engine": exact_returns,
            "policies": lambda: PolicyList([TablePolicy(uniform_table())]),
            "discount": lambda: 1.0,
        },
    ),
    Call("RolloutReturns", rollout_returns, {"world": small.world, **constants(episodes=5, seed=0)}),
    Call(
        "FitResult",
        fit_result,
        {
            "policy": lambda: TablePolicy(uniform_table()),
            "q": lambda: np.zeros((7, 2)),
            **constants(values=None, table=None, runs=()),
            "dataset": small.dataset,
        },
    ),
    Call(
        "SelectionView",
        view,
        {
            "dataset": small.dataset,
            **constants(rule="uds", gamma=0.99, budget=3, exploit="best", labels_per_refit=1),
            "initial": lambda: np.array([0]),
        },
    ),
    Call("view.reveal", reveal, {"transitions": lambda: np.array([0, 1]), "rewards": lambda: np.array([0.0, 1.0])}),
]
CALLS = MAKING + STEPS + PROBLEMS + WORLD_CALLS + POLICIES
