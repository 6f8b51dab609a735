"""The process in which a strategy plays: it holds the data without rewards, and what labels have revealed so far.

Every episode is played by a fresh fork of this process, so that nothing revealed in one episode is known in the next.
Without `os.fork` (Windows), all episodes are played by the same process.
"""

import contextlib
import gc
import hashlib
import inspect
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import agents
import selectenv
from experiments.benchmarks.suite.channel import Channel, Message
from experiments.benchmarks.suite.remote_env import RemoteEnv, RemoteProblem
from experiments.errors import ChannelClosedError
from selectenv.datasets.dataset import OfflineDataset
from selectenv.datasets.storage import assembled
from selectenv.evaluation.evaluator import Calls
from selectenv.streams import generator
from selectenv.view import SelectionView

DONE = 42
"""Exit code of the process of an episode that ended as it should; a strategy may exit with any other."""


class Player:
    """Plays one episode as the messages of the benchmark ask."""

    def __init__(self, name: str, channel: Channel, start: Message) -> None:
        """Make the strategy afresh.

        Args:
            name: name of the strategy.
            channel: where questions come from.
            start: the seed and the data.
        """
        self.agent, self.channel = agents.make(name), channel
        self.seed = int(start.fields["seed"])
        self.rng = generator(self.seed, "selection", self.agent.name)
        self.dataset = received_dataset(start)
        self.view: SelectionView | None = None
        self.info: dict[str, Any] = {}

    def train(self, message: Message) -> None:
        """Train with the remote evaluator."""
        calls = Calls()
        problem = RemoteProblem(self.dataset, self.channel, calls, message.fields["rule"])
        observation = {name: message.arrays[name] for name in message.fields["features"]}
        env = RemoteEnv(problem, calls, int(message.fields["budget"]), observation, message.arrays["action_mask"])
        self.agent.train(env, self.seed)
        self.channel.send("trained")

    def begin(self, message: Message) -> None:
        """Begin an episode."""
        self.view = SelectionView(self.dataset, initial=np.empty(0, np.int64), **message.fields)
        self.info = {
            "states": self.dataset.ids.copy(),
            "budget": self.view.budget,
            "initial": self.view.initial.copy(),
            "initial_revealed": {},
        }
        self.agent.begin(self.view)
        self.channel.send("begun")

    def select(self, message: Message) -> None:
        """Take in what the last labels revealed, and answer with the next ones."""
        assert self.view is not None
        observation = {name: message.arrays[name] for name in message.fields["features"]}
        labels = message.arrays["labels"]
        if len(labels):
            transitions = self.dataset.transitions_of(labels)
            self.view.add(transitions, message.arrays["rewards"])
            self.info |= self._news(labels, message.arrays["by_action"])
        self.info["action_mask"] = message.arrays["action_mask"].copy()
        k = int(message.fields["k"])
        if k == 1:
            chosen = np.array([self.agent.select(observation, self.info, self.rng)])
        else:
            chosen = np.asarray(self.agent.select_many(observation, self.info, k, self.rng))
        self.channel.send("labels", {"labels": chosen})

    def _news(self, labels: Any, by_action: Any) -> dict[str, Any]:
        """Return the part of the info that describes the last labels, as `RewardSelectionEnv` returns it."""
        revealed = {
            number: {action: mean for action, mean in enumerate(means) if not np.isnan(mean)}
            for number, means in zip(labels.tolist(), by_action.tolist(), strict=True)
        }
        if len(labels) == 1:
            (number,) = labels.tolist()
            return {"state": self.dataset.ids[number], "wasted": False, "revealed": revealed[number]}
        return {"state": self.dataset.ids[labels], "wasted": 0, "revealed": revealed}


def received_dataset(message: Message) -> OfflineDataset:
    """Return the dataset that a message describes: transitions without rewards, and not a word about their source."""
    return assembled(dict(message.arrays), int(message.fields["n_actions"]), message.fields["spec"])


def serve(name: str, channel: Channel, start: Message) -> None:
    """Play one episode; an exception of the strategy is reported to the benchmark."""
    try:
        player = Player(name, channel, start)
        channel.send("ready")
        answers = {"train": player.train, "begin": player.begin, "select": player.select}
        while (message := channel.receive()).kind != "end":
            answers[message.kind](message)
    except ChannelClosedError:
        raise
    except Exception as error:  # a strategy may raise anything
        channel.send("failed", error=f"{type(error).__name__}: {error}")


def hello(name: str) -> dict[str, Any]:
    """Return what the benchmark must know about a strategy: its taxonomy and a hash of its source file."""
    agent = agents.make(name)
    path = inspect.getsourcefile(type(agent))
    code = hashlib.blake2b(Path(path).read_bytes(), digest_size=8).hexdigest() if path else ""
    return {
        "name": agent.name,
        "taxonomy": asdict(agent.taxonomy),
        "features": list(agent.features),
        "one_at_a_time": agent.one_at_a_time,
        "code": code,
    }


def warm_up(name: str) -> None:
    """Play an episode on made-up data, so that forks find compiled code loaded; errors show in the first episode."""
    state = np.arange(1, 40) // 2 % 7
    data = selectenv.from_arrays(
        state[:-1], np.arange(38) % 2, state[1:], np.arange(38) % 5 == 0, rewards=np.arange(38.0) % 3
    )
    agent = agents.make(name)
    if agent.taxonomy.evaluator == "never":
        with contextlib.suppress(Exception):
            agents.play(selectenv.make_env(dataset=data, budget=3), agent)


def main() -> None:
    """Serve episodes until the benchmark closes the channel; what the strategy prints goes to standard error."""
    name = sys.argv[1]
    channel = Channel(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    try:
        try:
            channel.send("hello", **hello(name))
        except Exception as error:  # a module may raise anything when it is imported
            channel.send("failed", error=f"{type(error).__name__}: {error}")
            return
        warm_up(name)
        gc.freeze()  # forks share the pages of objects that the garbage collector leaves alone
        while True:
            start = channel.receive()
            child = os.fork() if hasattr(os, "fork") else 0
            if child:
                if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != DONE:
                    channel.send("failed", error="its process has ended in the middle of an episode")
                continue
            serve(name, channel, start)
            if hasattr(os, "fork"):
                os._exit(DONE)
    except (ChannelClosedError, KeyboardInterrupt):
        os._exit(0)


if __name__ == "__main__":
    main()
