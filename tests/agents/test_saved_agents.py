"""Saved strategies with flipped or missing bytes."""

import pytest

import agents
import selectenv
from agents.errors import SavedAgentError
from tests.damage import attempt, damaged_copies


def test_a_damaged_search_is_named_and_never_played(tmp_path):
    agent, path = agents.make("sequential-greedy"), tmp_path / "agent.json"
    agent.train(selectenv.make_env("Tree", budget=4))
    raw = agent.save(path).read_bytes()
    assert agents.load(path).memory == agent.memory
    noticed = 0
    for copy in damaged_copies(raw, sample=80):
        path.write_bytes(copy)
        found = attempt(lambda: agents.load(path), SavedAgentError, path)
        assert found is None or found.memory == agent.memory
        noticed += found is None
    assert noticed > 40


def test_a_changed_entry_does_not_match_the_digest(tmp_path):
    agent, path = agents.make("sequential-greedy"), tmp_path / "agent.json"
    agent.train(selectenv.make_env("Tree", budget=4))
    text = agent.save(path).read_text()
    path.write_text(text.replace('"budget": 4', '"budget": 3'))
    with pytest.raises(SavedAgentError, match="does not match its digest"):
        agents.load(path)


@pytest.mark.filterwarnings("ignore")  # zipfile's remarks on damaged headers
def test_a_damaged_selector_is_named_and_never_played(tmp_path):
    import torch

    agent, path = agents.make("maskable-ppo", steps=32, n_envs=2, hidden=8, sb3={"n_steps": 16}), tmp_path / "agent.zip"
    agent.train(selectenv.make_env("Tree", budget=4))
    raw = agent.save(path).read_bytes()
    truth = agent._scorer.state_dict()
    noticed = 0
    for copy in damaged_copies(raw):
        path.write_bytes(copy)
        found = attempt(lambda: agents.load(path), SavedAgentError, path)
        if found is not None:
            weights = found._scorer.state_dict()
            assert weights.keys() == truth.keys()
            assert all(torch.equal(weights[name], truth[name]) for name in truth)
            assert found.training_calls == agent.training_calls
            assert (found.hidden, found.steps) == (8, 32)
        noticed += found is None
    assert noticed > 20
