"""The benchmark's side of a strategy that plays in a process of its own."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from agents.base import Agent, Info, Observation, Taxonomy
from experiments.benchmarks.suite.channel import Arrays, Channel, Message
from experiments.engine.executors import ONE_THREAD
from experiments.errors import ChannelClosedError, ChannelError, StrategyFailedError, UndeclaredEvaluatorError
from selectenv.problem import SelectionProblem
from selectenv.typing import FloatArray, IntArray
from selectenv.view import SelectionView
from selectenv.wrappers.batch_labels import selection_env

MODULE = "experiments.benchmarks.suite.strategy_process"
END_SECONDS = 5
DATA_FIELDS = ("groups",)
"""Entries of a dataset's spec that a strategy is given: how states are grouped, not where the data come from."""


class StrategyProcess:
    """A process that was given the name of a strategy and, with every episode, reward-free data."""

    def __init__(self, strategy: str) -> None:
        """Start the process.

        Its dataset cache is an empty directory of its own, and it computes in one thread.

        Raises:
            StrategyFailedError: the strategy cannot be made.
        """
        self.strategy = strategy
        self._folder = tempfile.TemporaryDirectory(prefix="selectenv-benchmark-")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("SELECTENV_")}
        paths = [os.path.abspath(path) for path in sys.path]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, strategy],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={
                **inherited,
                **ONE_THREAD,
                "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
                "SELECTENV_CACHE": str(Path(self._folder.name) / "cache"),
                "SELECTENV_THREADS": "1",
            },
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.channel = Channel(self._process.stdout.fileno(), self._process.stdin.fileno())
        try:
            self.hello = self.receive("hello").fields
        except BaseException:
            self.close()
            raise

    def receive(self, kind: str) -> Message:
        """Return the next message, which must be of this kind.

        Raises:
            StrategyFailedError: the strategy raised an exception, or its process ended.
            ChannelError: it sent something else.
        """
        return self.check(self.next_message(), kind)

    def next_message(self) -> Message:
        """Return the next message, of any kind."""
        try:
            return self.channel.receive()
        except ChannelClosedError:
            raise StrategyFailedError(f"the process of {self.strategy} has ended unexpectedly") from None

    def check(self, message: Message, kind: str) -> Message:
        """Return a message if it is of the expected kind."""
        if message.kind == "failed":
            raise StrategyFailedError(f"{self.strategy} failed: {message.fields.get('error')}")
        if message.kind != kind:
            raise ChannelError(f"{self.strategy} sent {message.kind!r} instead of {kind!r}")
        return message

    def close(self) -> None:
        """End the process."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()


class RemoteAgent(Agent):
    """Plays like the strategy in its process, for one episode: `train`, then `agents.play`."""

    def __init__(self, process: StrategyProcess) -> None:
        """Play with a process."""
        said = process.hello
        self._process, self._channel = process, process.channel
        self.name = str(said["name"])  # type: ignore[misc]
        self.taxonomy = Taxonomy(**said["taxonomy"])  # type: ignore[misc]
        self.features = tuple(said["features"])
        self.one_at_a_time = bool(said["one_at_a_time"])  # type: ignore[misc]
        self.seconds = 0.0
        """Time that the strategy and the channel have taken, in seconds, without that of the evaluator."""
        self._problem: SelectionProblem | None = None
        self._view: SelectionView | None = None
        self._playing = False
        self._open = np.empty(0, bool)

    def train(self, env: gym.Env[Any, Any], seed: int = 0) -> None:
        """Start an episode with the data of ``env``; a strategy that declares it may then ask the evaluator."""
        inner = selection_env(env)
        obs, info = inner.reset(seed=seed)
        data = inner.problem.dataset.without_rewards
        spec = {name: data.spec[name] for name in DATA_FIELDS if name in data.spec}
        self._problem, self._playing = inner.problem.with_calls(), False
        self._exchange("start", "ready", data.arrays(), seed=seed, n_actions=data.n_actions, spec=spec)
        self.seconds = 0.0
        if self.taxonomy.evaluator != "never":
            arrays = {**obs, "action_mask": info["action_mask"]}
            rule = inner.problem.learner.rule
            self._exchange("train", "trained", arrays, features=list(obs), budget=inner.budget, rule=rule)
            self.training_calls = self._problem.evaluator.counts
            self._problem = inner.problem

    def begin(self, view: SelectionView) -> None:
        """Hand over the terms of the episode."""
        self._view, self._playing = view, True
        self._open = view.dataset.labelable.copy()
        terms = ("rule", "gamma", "budget", "oracle", "exploit", "labels_per_refit", "impute", "unseen")
        self._exchange("begin", "begun", **{name: getattr(view, name) for name in terms})

    def scores(self, obs: Observation, info: Info) -> FloatArray:
        """Raise: only labels come back."""
        raise NotImplementedError("a strategy in a process of its own returns labels, not scores")

    def select_many(self, obs: Observation, info: Info, k: int, rng: np.random.Generator) -> IntArray:
        """Hand over the observation and the newly revealed rewards; return the labels [k] of the strategy."""
        assert self._view is not None
        data, is_open = self._view.dataset, info["action_mask"] > 0
        labels = np.flatnonzero(self._open & ~is_open)
        self._open = is_open
        arrays = {**obs, "action_mask": info["action_mask"], "labels": labels}
        if len(labels):
            arrays["rewards"] = self._view.rewards[data.transitions_of(labels)]
            arrays["by_action"] = _means(info, labels, data.n_actions)
        answer = self._exchange("select", "labels", arrays, features=list(obs), k=k).arrays.get("labels")
        if answer is None or answer.shape != (k,) or answer.dtype.kind not in "iu":
            raise ChannelError(f"{self.name} must answer with the numbers of {k} states")
        return answer.astype(np.int64)

    def end(self) -> None:
        """End the episode."""
        self._channel.send("end")

    def _exchange(self, kind: str, wanted: str, arrays: Arrays | None = None, **fields: Any) -> Message:
        """Send a message and return the answer, after answering questions for the evaluator."""
        began = time.perf_counter()
        self._channel.send(kind, arrays, **fields)
        while (message := self._process.next_message()).kind == "evaluate":
            asked = time.perf_counter()
            values = self._evaluate(message.arrays.get("masks"))
            began += time.perf_counter() - asked
            self._channel.send("values", {"values": values})
        self.seconds += time.perf_counter() - began
        return self._process.check(message, wanted)

    def _evaluate(self, masks: Any) -> FloatArray:
        """Return the performances [sets] of label sets, counted."""
        allowed = ("playing",) if self._playing else ("training", "playing")
        if self._problem is None or self.taxonomy.evaluator not in allowed:
            when = "while it was playing" if self._playing else "before it played"
            raise UndeclaredEvaluatorError(
                f"{self.name} asked the evaluator {when}, but its taxonomy says evaluator={self.taxonomy.evaluator!r}"
            )
        return self._problem.performance_many(masks)


def _means(info: Info, labels: IntArray, n_actions: int) -> FloatArray:
    """Return the mean reward [labels, actions] that the last labels revealed, NaN for actions that were not taken."""
    revealed = info["revealed"] if len(labels) != 1 or not _is_single(info) else {int(labels[0]): info["revealed"]}
    means = np.full((len(labels), n_actions), np.nan)
    for row, number in zip(means, labels.tolist(), strict=True):
        for action, mean in revealed.get(number, {}).items():
            row[action] = mean
    return means


def _is_single(info: Info) -> bool:
    """Return whether the last step labelled one state, so that `revealed` maps actions to rewards."""
    return np.ndim(info["state"]) == 0
