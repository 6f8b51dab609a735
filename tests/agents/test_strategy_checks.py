"""User-defined strategies: weights and categories are checked, names are resolved, and reprs take one line."""

from dataclasses import dataclass, field

import numpy as np
import pytest

import agents
import selectenv
from agents.errors import WeightsError
from selectenv.errors import ExtensionError, OptionError, OptionTypeError, SelectEnvError, UnknownNameError

SIZE = {"dataset_size": 500, "cache": False}
NEVER = agents.Taxonomy(test_loop="open", training="none", evaluator="never")


@dataclass
class Weighted(agents.SamplingAgent):
    """Draws states with given weights; `test_a_class_is_named_by_its_module` names it."""

    given: list[float] | None = None
    other: dict[str, str] = field(default_factory=lambda: {"text": "line\nline " * 40})

    name = "weighted"
    taxonomy = NEVER

    def weights(self, obs, info):
        return np.ones(15) if self.given is None else np.array(self.given)


class NotADataclass(agents.SamplingAgent):
    """Cannot be made with options."""

    name = "not-a-dataclass"
    taxonomy = NEVER

    def weights(self, obs, info):
        return np.ones(15)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, -1.0, -1e-12])
@pytest.mark.parametrize("budget", [1, 3])
def test_weights_that_are_not_finite_or_negative_are_refused(wrong, budget):
    env = selectenv.make_env("Graph", budget=budget, **SIZE)
    agent = Weighted([1.0] * 6 + [wrong] + [1.0] * 8)
    with pytest.raises(WeightsError, match=r"weights of weighted .* for state number 6") as refused:
        agents.play(env, agent)
    assert isinstance(refused.value, SelectEnvError)
    assert isinstance(refused.value, ValueError)
    with pytest.raises(WeightsError):
        agent.scores(*env.reset(seed=0))


@pytest.mark.parametrize("wrong", [[[1.0] * 15], ["a"] * 15, [1e308] * 15])
def test_weights_of_another_kind_are_refused(wrong):
    with pytest.raises(WeightsError, match="weights of weighted"):
        agents.play(selectenv.make_env("Graph", budget=3, **SIZE), Weighted(wrong))


def test_weights_of_states_that_cannot_be_labelled_do_not_matter():
    env, agent = selectenv.make_env("Graph", budget=3, **SIZE), Weighted([1.0] * 15)
    obs, info = env.reset(seed=0)
    agent.given[4] = np.nan
    obs, _, _, _, news = env.step(4)
    info = {**info, **news}
    assert np.isnan(agent.scores(obs, info)[4])
    assert 4 not in agent.select_many(obs, info, 14, np.random.default_rng(0))


def test_weights_of_zero_are_drawn_last():
    env = selectenv.make_env("Graph", budget=3, **SIZE)
    weights = [0.0] * 15
    weights[3] = weights[8] = 1.0
    assert set(agents.play(env, Weighted(weights)).labels[:2].tolist()) == {3, 8}


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("opened", "none", "never"), "unknown test_loop 'opened'.*Did you mean 'open'"),
        (("open", "batched", "never"), "unknown training 'batched'.*Did you mean 'batch'"),
        (("open", "none", "play"), "unknown evaluator 'play'.*Did you mean 'playing'"),
        ((None, "none", "never"), "unknown test_loop None"),
    ],
)
def test_a_taxonomy_has_only_words_of_its_own(words, meant):
    with pytest.raises(UnknownNameError, match=meant) as refused:
        agents.Taxonomy(*words)
    assert isinstance(refused.value, ValueError)
    with pytest.raises(OptionTypeError, match="oracle"):
        agents.Taxonomy("open", "none", "never", oracle=True)


def test_a_class_is_named_by_its_module():
    agent = agents.make(f"{__name__}:Weighted", given=[1.0] * 15)
    assert type(agent) is Weighted
    assert agent.name == f"{__name__}:Weighted"
    episode = agents.play(selectenv.make_env("Graph", budget=3, **SIZE), agent)
    assert (episode.agent, len(episode.labels)) == (agent.name, 3)
    with pytest.raises(UnknownNameError, match=r"has no option 'giben'; allowed: given, other\. Did you mean 'given'"):
        agents.make(f"{__name__}:Weighted", giben=1)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        (f"{__name__}:Weightd", UnknownNameError, "did you mean 'Weighted'"),
        (f"{__name__}x:Weighted", ExtensionError, "there is no module"),
        ("no_such_module:Weighted", ExtensionError, "no module .no_such_module."),
        (f"{__name__}:NotADataclass", OptionTypeError, "must be a dataclass"),
        (f"{__name__}:np", OptionTypeError, "must be a dataclass"),
        (":", OptionError, "write module:name"),
        ("a:b:c", OptionError, "write module:name"),
        ("a b:c", OptionError, "write module:name"),
    ],
)
def test_wrong_references_are_named(name, error, message):
    with pytest.raises(error, match=message) as refused:
        agents.make(name)
    assert isinstance(refused.value, SelectEnvError)


def test_everything_is_shown_in_one_line():
    env = selectenv.make_env("Graph", budget=3, **SIZE)
    agent = Weighted()
    episode = agents.play(env, agent)
    for shown in (agent, episode, env.problem, env.problem.dataset, *map(agents.make, agents.AGENTS)):
        assert "\n" not in repr(shown)
        assert len(repr(shown)) < 400
    assert repr(agent).startswith("<agent weighted: given=None, other={'text': ")
    assert repr(agents.make("es-50")) == "<agent es-50: iterations=10, population=5, form='tabular'>"
    assert repr(agents.make("uniform")) == "<agent uniform>"
    assert repr(episode).startswith(f"<Episode of weighted: 3 labels, performance {episode.performance:.6g}, ")
