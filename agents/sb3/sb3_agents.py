"""maskable-ppo, ppo and dqn: selectors trained by Stable-Baselines3, with the network that fits every world."""

import json
import os
import zipfile
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym

from agents.base import Taxonomy
from agents.errors import NotTrainedError, SavedAgentError
from agents.learned.feature_context import SelectorAgent
from agents.learned.state_features import NAMES
from agents.registry import register
from agents.sb3.feature_wrapper import FeatureWrapper
from selectenv.checks import check_flag, check_instance, check_int, check_name, check_path, shown
from selectenv.errors import MissingExtraError, OptionError, OptionTypeError
from selectenv.io.atomic import whole_file
from selectenv.streams import generator
from selectenv.typing import Float32Array
from selectenv.view import SelectionView
from selectenv.wrappers.batch_labels import selection_env

CARD = "selectenv_card"
"""Attribute of an SB3 model, and so entry of its file, that says what the weights are."""


@dataclass
class Sb3Agent(SelectorAgent):
    """Learns to label by playing: scores every state and takes the best.

    What it learns serves any number of states and any world, because the network looks at states one by one beside
    what all of them have in common; how well it serves there is another question.
    """

    steps: int = 50_000
    """Of training, in all environments together."""
    hidden: int = 64
    """Width of the network."""
    n_envs: int = 4
    """Environments played side by side."""
    normalised: bool = True
    """Scale rewards so that no label earns 0 and all labels 1."""
    without: tuple[str, ...] = ()
    """Features of a state that are left out; see `agents.learned.state_features.NAMES`."""
    sb3: dict[str, Any] = field(default_factory=dict)
    """Options of the SB3 algorithm, on top of ours."""

    taxonomy = Taxonomy(test_loop="closed", training="iterative", evaluator="training")
    defaults: ClassVar[dict[str, Any]] = {}
    slow = True

    def __post_init__(self) -> None:
        """Start untrained."""
        check_int("steps", self.steps)
        check_int("hidden", self.hidden, 1, 4096)
        check_int("n_envs", self.n_envs)
        check_flag("normalised", self.normalised)
        check_instance("sb3", self.sb3, dict)
        if not isinstance(self.without, tuple | list):
            raise OptionTypeError(f"without must be a list of features, not {shown(self.without)}")
        self.without = self._without = tuple(self.without)
        for name in self.without:
            check_name("feature of a state", name, NAMES)
        self._scorer: Any = None
        self._model: Any = None
        self._file = b""  # what was loaded, until there is something new to save

    @abstractmethod
    def _parts(self) -> tuple[Any, Any]:
        """Return the algorithm of SB3 and its policy."""

    @abstractmethod
    def _scorer_of(self, model: Any) -> Any:
        """Return the network inside a model."""

    def train(
        self,
        env: gym.Env[Any, Any] | Sequence[gym.Env[Any, Any]],
        seed: int = 0,
        steps: int | None = None,
        *,
        callback: Any = None,
        tensorboard: str | os.PathLike[str] | None = None,
    ) -> None:
        """Train by playing; what was learned or loaded before is the start.

        Args:
            env: an environment, of which `n_envs` twins are played, or a list of environments to play as they are.
            seed: of the network, the episodes and the algorithm's chance.
            steps: instead of the agent's own number of steps.
            callback: an SB3 callback, or a list of them.
            tensorboard: folder to log training to.

        Raises:
            OptionError: no environment of reward selection, or no steps.
            MissingExtraError: Stable-Baselines3 is not installed.
        """
        total = check_int("steps", self.steps if steps is None else steps)
        if tensorboard is not None:
            tensorboard = os.fspath(check_path("tensorboard", tensorboard))
        played = self._played(env)
        counted = [selection_env(one).calls for one in played]
        before = [(calls.asked + calls.scored, calls.computed) for calls in counted]
        views = [FeatureWrapper(one, without=self.without, normalised=self.normalised) for one in played]
        model = self._new_model(_vectorised(views), _own_seed(seed, "training"), tensorboard)
        model.learn(total, callback=callback)
        self._model, self._scorer = model, self._scorer_of(model)
        self._scorer.eval()
        asked = sum(calls.asked + calls.scored - b[0] for calls, b in zip(counted, before, strict=True))
        computed = sum(calls.computed - b[1] for calls, b in zip(counted, before, strict=True))
        self.training_calls = self.training_calls[0] + asked, self.training_calls[1] + max(computed, 0)

    def _played(self, env: gym.Env[Any, Any] | Sequence[gym.Env[Any, Any]]) -> list[gym.Env[Any, Any]]:
        """Return the environments to play, after a look whether they fit each other."""
        if isinstance(env, gym.Env):
            inner = selection_env(env)
            return [inner.twin() for _ in range(self.n_envs)] if self.n_envs > 1 else [env]
        if not isinstance(env, Sequence) or not env:
            raise OptionTypeError(f"train on an environment or on a list of them, not on {shown(env)}")
        sizes = {selection_env(one).problem.n_states for one in env}
        if len(sizes) > 1:
            raise OptionError(f"environments that are played together need one size, not {sorted(sizes)} states")
        if len({id(selection_env(one)) for one in env}) < len(env):
            raise OptionError("an environment is in the list twice: give each a twin of its own, env.unwrapped.twin()")
        for one in env:
            if not isinstance(one.action_space, gym.spaces.Discrete):
                raise OptionError(f"selectors label one state a step; {one} wants {one.action_space}")
        return list(env)

    def _new_model(self, envs: Any, seed: int, tensorboard: str | os.PathLike[str] | None) -> Any:
        """Return an SB3 model that starts from what is known."""
        algorithm, policy = self._parts()
        options = {**self.defaults, "policy_kwargs": {"hidden": self.hidden}, "tensorboard_log": tensorboard}
        try:
            model = algorithm(policy, envs, **{**options, "seed": seed, "device": "cpu", **self.sb3})
        except (TypeError, ValueError) as error:
            raise OptionError(f"{self.name}: {algorithm.__name__} does not take these options: {error}") from None
        if self._scorer is not None:
            self._adopt(model)
        if tensorboard is None:
            model.set_logger(_silence())
        return model

    def _adopt(self, model: Any) -> None:
        """Give a fresh model what was learned before."""
        self._scorer_of(model).load_state_dict(self._scorer.state_dict())

    def evaluation(self, env: gym.Env[Any, Any], every: int, episodes: int = 5, seed: int = 0) -> Any:
        """Return an SB3 callback that plays on a twin of ``env`` every so many steps of each environment.

        It takes the best action, among the allowed ones where the algorithm knows them, and logs plain returns.
        """
        views = _vectorised([FeatureWrapper(selection_env(env).twin(), without=self.without)])
        views.seed(_own_seed(seed, "evaluation"))
        every, episodes = check_int("every", every), check_int("episodes", episodes)
        return self._callback()(views, eval_freq=every, n_eval_episodes=episodes, verbose=0)

    def _callback(self) -> Any:
        """Return SB3's class of callbacks that evaluate."""
        from stable_baselines3.common.callbacks import EvalCallback

        return EvalCallback

    def begin(self, view: SelectionView) -> None:
        """Compute the features of the data.

        Raises:
            NotTrainedError: nothing was learned yet.
        """
        if self._scorer is None:
            raise NotTrainedError(f"{self.name} has learned nothing yet: call agent.train(env) first, or load one")
        super().begin(view)

    def score_features(self, features: Float32Array) -> Float32Array:
        """Return the scores."""
        import torch

        with torch.no_grad():
            scores: Float32Array = self._scorer(torch.from_numpy(features)[None])[0][0].numpy()
        return scores

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model as Stable-Baselines3 does; the file is there whole or not at all."""
        if self._scorer is None:
            raise NotTrainedError(f"{self.name} has nothing to save: call agent.train(env) first")
        with whole_file(path) as file:
            if self._model is None:
                file.write(self._file)
            else:
                setattr(self._model, CARD, self._card())
                self._model.save(file)
        return Path(path)

    def _card(self) -> dict[str, Any]:
        """Say what the weights are; options of SB3 that are no plain values are not kept."""
        plain = {name: value for name, value in self.sb3.items() if isinstance(value, str | int | float | None)}
        options = {
            "steps": self.steps, "hidden": self.hidden, "n_envs": self.n_envs, "normalised": self.normalised,
            "without": list(self.without), "sb3": plain,
        }  # fmt: skip
        return {"agent": self.name, "options": options, "calls": list(self.training_calls), "features": list(NAMES)}


@register("maskable-ppo")
@dataclass
class MaskablePpo(Sb3Agent):
    """Proximal policy optimisation that never tries a state twice (sb3-contrib)."""

    name = "maskable-ppo"
    defaults: ClassVar[dict[str, Any]] = {
        "n_steps": 256, "batch_size": 256, "n_epochs": 4, "learning_rate": 1e-3, "gamma": 1.0, "ent_coef": 0.01,
    }  # fmt: skip

    def _parts(self) -> tuple[Any, Any]:
        from agents.sb3.maskable_policy import MaskablePPO, MaskableScorerPolicy

        return MaskablePPO, MaskableScorerPolicy

    def _callback(self) -> Any:
        from sb3_contrib.common.maskable.callbacks import MaskableEvalCallback

        return MaskableEvalCallback

    def _scorer_of(self, model: Any) -> Any:
        return model.policy.mlp_extractor.scorer


@register("ppo")
@dataclass
class Ppo(Sb3Agent):
    """Proximal policy optimisation; it must learn by itself that a second label of a state is wasted."""

    name = "ppo"
    defaults = MaskablePpo.defaults

    def _parts(self) -> tuple[Any, Any]:
        from stable_baselines3 import PPO

        from agents.sb3.scoring_policies import ScorerPolicy

        return PPO, ScorerPolicy

    def _scorer_of(self, model: Any) -> Any:
        return model.policy.mlp_extractor.scorer


@register("dqn")
@dataclass
class Dqn(Sb3Agent):
    """Deep Q-learning: the scores are action values."""

    name = "dqn"
    defaults: ClassVar[dict[str, Any]] = {
        "learning_rate": 1e-3, "buffer_size": 20_000, "learning_starts": 500, "batch_size": 64, "gamma": 1.0,
        "train_freq": 4, "target_update_interval": 500, "exploration_fraction": 0.3,
    }  # fmt: skip

    def _parts(self) -> tuple[Any, Any]:
        from stable_baselines3 import DQN

        from agents.sb3.scoring_policies import ScorerDqnPolicy

        return DQN, ScorerDqnPolicy

    def _adopt(self, model: Any) -> None:
        super()._adopt(model)
        model.q_net_target.load_state_dict(model.q_net.state_dict())

    def _scorer_of(self, model: Any) -> Any:
        return model.policy.q_net.q_net.scorer


def load_sb3(path: str | os.PathLike[str], make: Any) -> Sb3Agent:
    """Load a strategy from the file that `Sb3Agent.save` wrote; only plain text and tensors of it are read.

    Args:
        path: the file.
        make: makes an agent by name and options.

    Raises:
        SavedAgentError: the file is missing, damaged, foreign, or of another network.
    """
    name = os.fspath(path)
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(f"this strategy needs torch ({error}): pip install 'selectenv[meta]'") from error
    try:
        with zipfile.ZipFile(path) as archive:
            card = json.loads(archive.read("data"))[CARD]
            with archive.open("policy.pth") as file:
                weights = torch.load(file, map_location="cpu", weights_only=True)
        agent = make(card["agent"], **card["options"])
        if card["features"] != list(NAMES) or not isinstance(agent, Sb3Agent):
            raise ValueError("it is a network with other input features")
        agent._scorer = scorer_from(weights, agent.hidden)
        agent._file = Path(path).read_bytes()
        asked, computed = card["calls"]
        agent.training_calls = int(asked), int(computed)
    except FileNotFoundError:
        raise SavedAgentError(f"there is no saved strategy {name!r}") from None
    except MissingExtraError:
        raise
    except Exception as error:  # damage has many names: zipfile, json, torch and pickle each raise their own
        raise SavedAgentError(f"{name!r} is damaged, or no selector saved by this project ({error})") from None
    return agent


def scorer_from(weights: dict[str, Any], hidden: int) -> Any:
    """Return the network out of the weights of an SB3 policy."""
    from agents.learned.scorer import StateScorer

    scorer = StateScorer(hidden)
    marks = ("mlp_extractor.scorer.", "q_net.q_net.scorer.")
    found = {key.removeprefix(mark): value for key, value in weights.items() for mark in marks if key.startswith(mark)}
    scorer.load_state_dict(found)
    return scorer.eval()


def _own_seed(seed: int, purpose: str) -> int:
    """Return a seed for SB3 that no episode of play has, so that worlds met in training do not come back in play."""
    return int(generator(check_int("seed", seed, 0), "sb3", purpose).integers(2**31))


def _silence() -> Any:
    """Return a logger that writes nowhere; SB3's own would leave an empty folder behind."""
    from stable_baselines3.common.logger import Logger

    return Logger(None, [])


def _vectorised(views: list[FeatureWrapper]) -> Any:
    try:
        from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor
    except ImportError as error:
        raise MissingExtraError(
            f"training selectors needs Stable-Baselines3 ({error}): pip install 'selectenv[meta]'"
        ) from error
    return VecMonitor(DummyVecEnv([lambda view=view: view for view in views]))  # type: ignore[misc]
