"""maskable-ppo, ppo and dqn: selectors trained with Stable-Baselines3; their network works in every world."""

import io
import json
import os
import zipfile
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym

from agents.base import Taxonomy, check_features
from agents.errors import NotTrainedError, SavedAgentError
from agents.learned.feature_context import SelectorAgent
from agents.learned.state_features import ALL_NAMES, NAMES
from agents.registry import register
from agents.sb3.env_copies import Envs, MakeEnv, copy_of, environments, made_by
from agents.sb3.feature_wrapper import FeatureWrapper, RewardScales
from selectenv.checks import (
    check_callable,
    check_flag,
    check_instance,
    check_int,
    check_name,
    shown,
)
from selectenv.errors import MissingExtraError, OptionError, OptionTypeError
from selectenv.evaluation.evaluator import Calls
from selectenv.io.atomic import whole_file
from selectenv.io.event_log import log_directory
from selectenv.options import FEATURES
from selectenv.streams import generator
from selectenv.typing import Float32Array
from selectenv.view import SelectionView
from selectenv.wrappers.batch_labels import selection_env

CARD = "selectenv_card"
"""Attribute of an SB3 model, stored in its file, that describes the weights."""


@dataclass
class Sb3Agent(SelectorAgent):
    """Learns by reinforcement learning to score states, and labels the state with the highest score.

    The network scores each state from its own features and from features pooled over all states, so that a trained
    selector can be used with any number of states and in any world; how well it transfers is not guaranteed.
    """

    steps: int = 50_000
    """Number of training steps, summed over all environments."""
    hidden: int = 64
    """Width of the network."""
    n_envs: int = 4
    """Number of environments in parallel."""
    normalised: bool = True
    """Scale rewards so that the return is 0 without labels and 1 with all labels."""
    without: tuple[str, ...] = ()
    """Names of state features to leave out; see `agents.learned.state_features.NAMES`."""
    sb3: dict[str, Any] = field(default_factory=dict)
    """Options of the SB3 algorithm; they override ``defaults``."""

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
        self._scales = RewardScales()
        self._model: Any = None
        self._file = b""  # content of the loaded file, until training changes the weights

    @abstractmethod
    def _parts(self) -> tuple[Any, Any]:
        """Return the SB3 algorithm and its policy class."""

    @abstractmethod
    def _scorer_of(self, model: Any) -> Any:
        """Return the state scorer inside an SB3 model."""

    def train(
        self,
        env: Envs,
        seed: int = 0,
        steps: int | None = None,
        *,
        callback: Any = None,
        tensorboard: str | os.PathLike[str] | None = None,
    ) -> None:
        """Train by reinforcement learning, starting from the current weights if there are any.

        Args:
            env: an environment, a function without arguments that makes one, or a list of environments. Unless `n_envs`
                is 1, the environment is copied with its wrappers: on the same problem, with call counts of their own.
                The function is called `n_envs` times; a list is used as it is. Copies and what the function makes are
                closed after training.
            seed: seed of the network, the episodes and the algorithm.
            steps: number of training steps; defaults to the agent's option ``steps``.
            callback: an SB3 callback, or a list of them.
            tensorboard: TensorBoard log directory; defaults to no log.

        Raises:
            OptionError: ``env`` is not a reward-selection environment, or ``steps`` is not positive.
            MissingFeatureError: ``env`` leaves out features that the network needs.
            EnvironmentCopyError: a wrapper of ``env`` did not record its arguments, so that it cannot be copied.
            MissingExtraError: Stable-Baselines3 is not installed.
        """
        total = check_int("steps", self.steps if steps is None else steps)
        if self._names != NAMES:
            raise OptionError(f"{self.name} was trained with other features: it can play, but not be trained further")
        folder = None if tensorboard is None else os.fspath(log_directory("tensorboard", tensorboard))
        if callback is not None:
            _check_callback(callback)
        run = total, _own_seed(seed, "training"), callback, folder
        scales = self._scales if self.normalised else None
        if _can_be_vector(env, self.n_envs):
            from agents.sb3.feature_vector import FeatureVector
            from agents.sb3.vec_selection import VecSelection, vector_of

            vector = vector_of(env, self.n_envs)  # type: ignore[arg-type]  # a single environment
            check_features(self.name, self.features, vector.options.features or FEATURES)
            views = VecSelection(FeatureVector(vector, without=self.without, scales=scales))
            self._train_in(_monitored(views), lambda: vector.calls, *run)
            return
        played, made = environments(env, self.n_envs)
        try:
            for one in played:
                check_features(self.name, self.features, selection_env(one).options.features or FEATURES)
            wrapped = [FeatureWrapper(one, without=self.without, scales=scales) for one in played]
            self._train_in(_vectorised(wrapped), lambda: [selection_env(one).calls for one in played], *run)
        finally:
            for one in made:
                one.close()

    def _train_in(
        self,
        views: Any,
        calls: Callable[[], Sequence[Calls]],
        total: int,
        seed: int,
        callback: Any,
        tensorboard: str | None,
    ) -> None:
        """Train for ``total`` steps in these environments, and count the calls that it takes."""
        before = [replace(one) for one in calls()]
        model = self._new_model(views, seed, tensorboard)
        model.learn(total, callback=callback)
        self._model, self._scorer = model, self._scorer_of(model)
        self._scorer.eval()
        spent = (one - earlier for one, earlier in zip(calls(), before, strict=True))
        self.training_calls = sum(spent, self.training_calls)

    def _new_model(self, envs: Any, seed: int, tensorboard: str | os.PathLike[str] | None) -> Any:
        """Return an SB3 model that starts from the current weights, if there are any."""
        algorithm, policy = self._parts()
        options = {**self.defaults, "policy_kwargs": {"hidden": self.hidden}, "tensorboard_log": tensorboard}
        try:
            model = algorithm(policy, envs, **{**options, "seed": seed, "device": "cpu", **self.sb3})
        except (TypeError, ValueError) as error:
            raise OptionError(f"{self.name}: {algorithm.__name__} does not accept these options: {error}") from None
        if self._scorer is not None:
            self._adopt(model)
        if tensorboard is None:
            model.set_logger(_silence())
        return model

    def _adopt(self, model: Any) -> None:
        """Copy the current weights into a new model."""
        self._scorer_of(model).load_state_dict(self._scorer.state_dict())

    def evaluation(self, env: gym.Env[Any, Any] | MakeEnv, every: int, episodes: int = 5, seed: int = 0) -> Any:
        """Return an SB3 callback that evaluates on a copy of ``env`` every ``every`` steps of each environment.

        The copy has the same wrappers; ``env`` may also be a function that makes an environment. The callback acts
        greedily, with action masks where the algorithm supports them, and logs returns without normalisation.

        Raises:
            EnvironmentCopyError: a wrapper of ``env`` did not record its arguments, so that it cannot be copied.
        """
        copy = copy_of(env) if isinstance(env, gym.Env) else made_by(env, 1)[0]
        views = _vectorised([FeatureWrapper(copy, without=self.without)])
        views.seed(_own_seed(seed, "evaluation"))
        every, episodes = check_int("every", every), check_int("episodes", episodes)
        return self._callback()(views, eval_freq=every, n_eval_episodes=episodes, verbose=0)

    def _callback(self) -> Any:
        """Return the SB3 class of evaluation callbacks."""
        from stable_baselines3.common.callbacks import EvalCallback

        return EvalCallback

    def begin(self, view: SelectionView) -> None:
        """Compute the features of the data.

        Raises:
            NotTrainedError: the selector is not trained.
        """
        if self._scorer is None:
            raise NotTrainedError(f"{self.name} is not trained: call agent.train(env) first, or load a saved strategy")
        super().begin(view)

    def score_features(self, features: Float32Array) -> Float32Array:
        """Return the scores [n] for features [n, features]."""
        import torch

        with torch.no_grad():
            scores: Float32Array = self._scorer(torch.from_numpy(features)[None])[0][0].numpy()
        return scores

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model in the format of Stable-Baselines3; the file is written atomically."""
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
        """Return a description of the weights; SB3 options that are not plain values are not stored."""
        plain = {name: value for name, value in self.sb3.items() if isinstance(value, str | int | float | None)}
        options = {
            "steps": self.steps,
            "hidden": self.hidden,
            "n_envs": self.n_envs,
            "normalised": self.normalised,
            "without": list(self.without),
            "sb3": plain,
        }
        return {
            "agent": self.name,
            "options": options,
            "calls": self.training_calls.to_dict(),
            "features": list(self._names),
        }


@register("maskable-ppo")
@dataclass
class MaskablePpo(Sb3Agent):
    """Proximal policy optimisation with action masks, so that no state is labelled twice (sb3-contrib)."""

    name = "maskable-ppo"
    defaults: ClassVar[dict[str, Any]] = {
        "n_steps": 256,
        "batch_size": 256,
        "n_epochs": 4,
        "learning_rate": 1e-3,
        "gamma": 1.0,
        "ent_coef": 0.01,
    }

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
    """Proximal policy optimisation without action masks: it has to learn that labelling a state twice is wasted."""

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
        "learning_rate": 1e-3,
        "buffer_size": 20_000,
        "learning_starts": 500,
        "batch_size": 64,
        "gamma": 1.0,
        "train_freq": 4,
        "target_update_interval": 500,
        "exploration_fraction": 0.3,
    }

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
    """Load a strategy from the file that `Sb3Agent.save` wrote; only JSON and tensors are read, never pickled objects.

    Args:
        path: the file.
        make: function that makes an agent from a name and options.

    Raises:
        SavedAgentError: the file is missing, damaged, or contains another network.
    """
    name = os.fspath(path)
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError(f"this strategy needs torch ({error}): pip install 'selectenv[meta]'") from error
    try:
        content = Path(path).read_bytes()
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            damaged = archive.testzip()
            if damaged is not None:
                raise ValueError(f"its part {damaged!r} does not match its checksum")
            card = json.loads(archive.read("data"))[CARD]
            policy = io.BytesIO(archive.read("policy.pth"))  # read as a whole, because only then it is checked
        weights = torch.load(policy, map_location="cpu", weights_only=True)
        agent = make(card["agent"], **card["options"])
        names = tuple(card["features"])
        if names[:1] != ("seen",) or not set(names) <= set(ALL_NAMES) or not isinstance(agent, Sb3Agent):
            raise ValueError("it is a network with input features that this release does not know")
        agent._names, agent._scorer = names, scorer_from(weights, agent.hidden, len(names))
        agent._file = content
        agent.training_calls = Calls.from_dict(card["calls"])
    except FileNotFoundError:
        raise SavedAgentError(f"there is no saved strategy {name!r}") from None
    except MissingExtraError:
        raise
    except Exception as error:  # corrupt files raise unrelated exception types: those of zipfile, json, torch, pickle
        raise SavedAgentError(f"{name!r} is damaged, or not a selector saved by this project ({error})") from None
    return agent


def scorer_from(weights: dict[str, Any], hidden: int, features: int = len(NAMES)) -> Any:
    """Return the state scorer with the weights of an SB3 policy, for so many features per state."""
    from agents.sb3.scoring_policies import PooledScorer

    scorer = PooledScorer(hidden, features)
    marks = ("mlp_extractor.scorer.", "q_net.q_net.scorer.")
    found = {key.removeprefix(mark): value for key, value in weights.items() for mark in marks if key.startswith(mark)}
    scorer.load_state_dict(found)
    return scorer.eval()


def _check_callback(callback: Any) -> None:
    """Raise unless SB3 takes ``callback``: its own kind, a function, or a list of its own kind."""
    from stable_baselines3.common.callbacks import BaseCallback

    several = isinstance(callback, list) and all(isinstance(one, BaseCallback) for one in callback)
    if not several and not isinstance(callback, BaseCallback):
        check_callable("callback", callback, "locals", "globals")


def _own_seed(seed: int, purpose: str) -> int:
    """Return a seed for SB3 that differs from those of `agents.play`, so that training worlds do not recur in play."""
    return int(generator(check_int("seed", seed, 0), "sb3", purpose).integers(2**31))


def _silence() -> Any:
    """Return a logger that writes nothing; the default logger of SB3 leaves an empty directory behind."""
    from stable_baselines3.common.logger import Logger

    return Logger(None, [])


def _can_be_vector(env: Envs, count: int) -> bool:
    """Return whether to train in one vector environment: of several copies of an environment without wrappers."""
    _require_sb3()
    from agents.sb3.vec_selection import is_plain

    return isinstance(env, gym.Env) and count > 1 and is_plain(env)


def _vectorised(views: list[FeatureWrapper]) -> Any:
    """Return a vectorised environment that steps its environments one after the other."""
    _require_sb3()
    from stable_baselines3.common.vec_env import DummyVecEnv

    return _monitored(DummyVecEnv([lambda view=view: view for view in views]))  # type: ignore[misc]


def _monitored(views: Any) -> Any:
    """Return vectorised environments that log the returns of their episodes."""
    from stable_baselines3.common.vec_env import VecMonitor

    return VecMonitor(views)


def _require_sb3() -> None:
    try:
        import stable_baselines3  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f"training selectors needs Stable-Baselines3 ({error}): pip install 'selectenv[meta]'"
        ) from error
