"""Valid calls of everything that `agents` and the wrappers offer."""

import warnings
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

import agents
from agents.base import Taxonomy
from agents.registry import AGENTS
from agents.sb3.sb3_agents import Sb3Agent
from selectenv.checks import is_int
from selectenv.errors import UnknownCostWarning
from selectenv.evaluation import Calls
from selectenv.wrappers import BatchLabels, OneShot, TensorBoardMonitor
from tests.odd_arguments import small_objects as small
from tests.odd_arguments.judge import Call
from tests.odd_arguments.library_calls import constants

MOST = 100
"""Strategies with a larger number among their options would search for long; they are made but not trained."""


# Strategies


def make(name: Any, **options: Any) -> Any:
    agent = agents.make(name, **options)
    numbers = [value for value in options.values() if is_int(value)]
    if isinstance(agent, Sb3Agent) or any(number > MOST for number in numbers):
        return None
    env = small.env()
    agent.train(env)
    return agents.play(env, agent).performance


def cheap(name: str) -> dict[str, Callable[[], Any]]:
    """Return the options of a strategy, with numbers that make it cheap."""
    small_numbers = {"max_evaluations": 40, "iterations": 1, "population": 3, "seconds": 1.0, "steps": 16, "n_envs": 1}
    kind, preset = AGENTS[name]
    found: dict[str, Callable[[], Any]] = {}
    for option in fields(kind):  # type: ignore[arg-type]  # strategies are dataclasses
        if option.init:
            default = option.default_factory() if option.default_factory is not MISSING else option.default
            value = small_numbers.get(option.name, preset.get(option.name, default))
            found[option.name] = lambda value=value: value  # type: ignore[misc]
    return found


def agent(name: str) -> dict[str, Callable[[], Any]]:
    """Return a trained strategy, as an argument."""
    return {"agent": lambda: small.agent(name)}


def play(env: Any, agent: Any, seed: Any) -> Any:
    return agents.play(env, agent, seed).performance


def method(name: str) -> Callable[..., Any]:
    return lambda agent, **arguments: getattr(agent, name)(**arguments)


def train(agent: Any, env: Any, seed: Any) -> Any:
    agent.train(env, seed)
    return agents.play(small.env(), agent).performance


def begin(agent: Any, view: Any) -> Any:
    agent.begin(view)
    return agent.scores(small.observation(), small.info())


def register(name: Any, kind: Any, option: Any) -> Any:
    try:
        agents.register(name, decay=option)(kind)
        return make(name)
    finally:
        if isinstance(name, str) and name.startswith("odd"):
            AGENTS._rows.pop(name, None)


def search_task(env: Any, seed: Any, sets: Any) -> Any:
    task = agents.SearchTask(env, seed)
    task.by_visitation(np.array([0]))
    return task.evaluate(sets)


def save(agent: Any, path: Any) -> Any:
    return agents.load(agent.save(path))


def train_sb3(**arguments: Any) -> Any:
    if is_int(arguments["steps"]) and arguments["steps"] > MOST:
        return
    agents.make("ppo", steps=8, n_envs=1, sb3={"n_steps": 4, "batch_size": 4}).train(**arguments)


def from_sb3(**arguments: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnknownCostWarning)  # the model is a file
        agent = agents.from_sb3(**arguments)
    return agents.play(small.env(), agent).performance


def look_up(name: Any) -> Any:
    name in AGENTS, AGENTS.get(name)
    return AGENTS[name]


NAMES = [name for name in AGENTS if name not in ("es-50", "es-200", "es-1000", "ppo", "dqn", "guided-on-policy")]
SELECTING = ("uniform", "visitation", "guided", "terminal", "terminal-guided", "adaptive-mixture", "learned", "best-of")
EPISODE = {"obs": small.observation, "info": small.info}
RNG = {"rng": lambda: np.random.default_rng(0)}
AGENT_CALLS = [
    Call("agents.make", make, {"name": lambda: "guided"}),
    *(Call(f"agents.make {name}", make, {"name": lambda name=name: name, **cheap(name)}) for name in NAMES),  # type: ignore[misc]
    Call("agents.play", play, {"env": small.env, "agent": small.agent, "seed": lambda: 0}),
    Call("agents.load", agents.load, {"path": small.agent_file}),
    Call(
        "agent.save",
        save,
        {"path": lambda: small.folder() / "again.json"},
        fixed={"agent": lambda: small.agent("best-of")},
    ),
    *(
        Call(
            f"{name}.train",
            train,
            {"env": small.env, "seed": lambda: 0},
            fixed={"agent": lambda name=name: agents.make(name)},  # type: ignore[misc]
        )
        for name in ("guided", "best-of", "sequential-greedy", "adaptive-mixture")
    ),
    *(
        Call(f"{name}.begin", begin, {"view": lambda: small.env().view()}, fixed=agent(name))
        for name in ("guided", "terminal", "learned", "best-of")
    ),
    *(
        Call(f"{name}.{call}", method(call), {**EPISODE, **more}, fixed=agent(name))
        for name in SELECTING
        for call, more in (("scores", {}), ("select", RNG), ("select_many", {"k": lambda: 2, **RNG}))
    ),
    Call(
        "agents.register",
        register,
        {"name": lambda: "odd-agent", "kind": lambda: AGENTS["guided"].kind, "option": lambda: "linear"},
    ),
    Call(
        "agents.Episode",
        agents.Episode,
        constants(
            agent="odd",
            labels=np.arange(2),
            ids=np.arange(2),
            performance=1.0,
            calls=Calls(),
            taxonomy=Taxonomy("open", "none", "never"),
        ),
    ),
    Call("SearchTask", search_task, {"env": small.env, "seed": lambda: 0, "sets": lambda: np.array([[0, 1]])}),
    Call("agents.from_sb3", from_sb3, {"model": small.sb3_model_file, **constants(observe=None, name=None)}),
    Call("Taxonomy", agents.Taxonomy, constants(test_loop="open", training="none", evaluator="never", oracle="")),
    Call("AGENTS", look_up, {"name": lambda: "guided"}),
    Call(
        "Sb3Agent.train",
        train_sb3,
        {"env": small.env, **constants(seed=0, steps=None, callback=None, tensorboard=None)},
    ),
    Call(
        "Sb3Agent.evaluation",
        agents.make("ppo").evaluation,  # type: ignore[attr-defined]
        {"env": small.env, **constants(every=10, episodes=1, seed=0)},
    ),
]


# Wrappers


def batch_labels(env: Any, k: Any) -> Any:
    wrapped = BatchLabels(env, k)
    wrapped.reset(seed=0)
    wrapped.action_masks()
    return wrapped.step(np.arange(wrapped.k))[1]


def batch_step(action: Any) -> Any:
    wrapped = BatchLabels(small.env(), 2)
    wrapped.reset(seed=0)
    return wrapped.step(action)[1]


def one_shot(env: Any) -> Any:
    wrapped = OneShot(env)
    wrapped.reset(seed=0)
    return wrapped.step(np.zeros(7))[1]


def one_shot_method(name: str) -> Callable[..., Any]:
    def call(before_reset: Any = False, **arguments: Any) -> Any:
        wrapped = OneShot(small.fresh_env())
        if before_reset is not True:
            wrapped.reset(seed=0)
        return getattr(wrapped, name)(**arguments)

    return call


def monitor(env: Any, logdir: Any, detail_every: Any, action: Any, closed: Any) -> Any:
    wrapped = TensorBoardMonitor(env, logdir, detail_every=detail_every)
    try:
        wrapped.reset(seed=0)
        if closed is True:
            wrapped.close()
        wrapped.action_masks()
        for _ in range(3):
            wrapped.step(action)
        return wrapped.reset(seed=1)
    finally:
        wrapped.close()


def reset(kind: Any, seed: Any, options: Any) -> Any:
    return kind(small.env()).reset(seed=seed, options=options)


def scores() -> Any:
    return np.zeros((2, 7))


WRAPPER_CALLS = [
    Call("BatchLabels", batch_labels, {"env": small.env, "k": lambda: 2}),
    Call("BatchLabels.step", batch_step, {"action": lambda: np.array([0, 1])}),
    Call("OneShot", one_shot, {"env": small.env}),
    Call("OneShot.step", one_shot_method("step"), {"action": lambda: np.zeros(7), "before_reset": lambda: False}),
    Call("OneShot.masks", one_shot_method("masks"), {"scores": scores, "before_reset": lambda: False}),
    Call(
        "OneShot.performance_many",
        one_shot_method("performance_many"),
        {"scores": scores, "before_reset": lambda: False},
    ),
    Call(
        "TensorBoardMonitor",
        monitor,
        {
            "env": small.env,
            "logdir": lambda: small.folder() / "tensorboard",
            **constants(detail_every=2, action=1, closed=False),
        },
    ),
    Call("OneShot.reset", lambda **given: reset(OneShot, **given), constants(seed=0, options=None), True),
]
CALLS = AGENT_CALLS + WRAPPER_CALLS
