"""The agent auto: what its labels depend on, and what its network sees."""

import numpy as np
import pytest

import agents
import selectenv
from agents.errors import NotTrainedError, SavedAgentError
from agents.imagine import imagine_agent
from agents.imagine.imagine_agent import Imagine
from agents.imagine.outlook import NOTABLE
from agents.imagine.stacked_agent import CONVINCED, IN_PLAN, PLAN_WINS, SHIPPED, stacked_path
from agents.imagine.stacked_features import IMAGINED, STACKED_NAMES, StackedContext
from agents.imagine.stacked_network import INPUTS, columns_of, log_shares, read_stacked, stacked_scores
from agents.learned.state_features import ALL_NAMES
from selectenv.env import RewardSelectionEnv
from selectenv.errors import LargeWorldWarning, NoRewardsWarning, OptionError
from selectenv.io.weights import load_weights, save_weights


def problem(world="Tree", **options):
    return selectenv.make_problem(world, **{"dataset_size": 5_000, "cache": False, **options})


def play(task, budget, seed=0, agent=None, **options):
    agent = agents.make("auto") if agent is None else agent
    return agents.play(RewardSelectionEnv(task, budget, **options), agent, seed).labels.tolist()


def test_an_agent_that_begins_late_catches_up():
    """Labels are a function of the labels so far, so that a session can be closed and opened again."""
    env = RewardSelectionEnv(problem(), 5)
    obs, info = env.reset(seed=0)
    agent, late = (agents.make("auto") for _ in range(2))
    with pytest.raises(NotTrainedError, match="auto does not know the data yet"):
        agent.scores(obs, info)
    agent.begin(env.view())
    for _ in range(3):
        obs, _, _, _, news = env.step(agent.select(obs, info, np.random.default_rng(0)))
        info = {**info, **news}
    late.begin(env.view())
    scores = agent.scores(obs, info)
    assert np.array_equal(late.scores(obs, info), scores, equal_nan=True)
    assert np.isnan(scores).tolist() == (~env.action_masks()).tolist()
    several = agent.select_many(obs, info, 4, np.random.default_rng(0))
    assert several.tolist() == np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")[:4].tolist()


def test_the_seed_changes_what_is_imagined():
    env = RewardSelectionEnv(problem("FrozenLake"), 5)
    obs, info = env.reset(seed=0)
    found = []
    for seed in (0, 1):
        agent = agents.make("auto", seed=seed)
        agent.begin(env.view())
        found.append(agent.scores(obs, info))
    assert not np.array_equal(*found, equal_nan=True)


@pytest.mark.parametrize("budget", [1, 3])
def test_features_are_finite_and_bounded_until_no_label_is_left(budget):
    env = RewardSelectionEnv(problem("CliffWalk", dataset_size=1_000), budget)
    obs, info = env.reset(seed=0)
    imagine = Imagine(particles=24)
    imagine.begin(env.view())
    context = StackedContext(env.view(), imagine)
    for left in range(budget, -1, -1):
        features = context.features(obs, info)
        assert features.shape == (env.problem.n_states, len(STACKED_NAMES))
        more = features[:, len(ALL_NAMES) :]
        assert np.abs(more).max() <= 2
        planned = features[:, STACKED_NAMES.index("in plan")]
        assert planned.sum() == left
        shares = np.exp(log_shares(features))[env.action_masks()]
        assert shares.sum() == pytest.approx(1, abs=0.01)
        families = [i for i, name in enumerate(IMAGINED) if name.startswith("family ")]
        assert more[env.problem.dataset.labelable][:, families].sum(axis=1) == pytest.approx(1, abs=1e-5)
        if left:
            obs, _, _, _, news = env.step(int(np.flatnonzero(env.action_masks())[0]))
            info = {**info, **news}


def test_what_learned_proposes_is_compared_with_the_plan():
    env = RewardSelectionEnv(problem("CliffWalk", learner="adapted"), 12)
    obs, _ = env.reset(seed=0)
    imagine = Imagine(particles=24)
    imagine.begin(env.view())
    outlook = imagine.outlook(obs)
    same = outlook.proposal_columns(outlook.plan)
    assert (same["proposal deficit"], same["proposal deficit spread"], same["plan wins"]) == (0, 0, 0)
    worst = np.setdiff1d(np.flatnonzero(outlook.free), outlook.plan)[:12]
    other = outlook.proposal_columns(worst)
    planned, proposed = outlook.planner.by_particle([outlook.plan, worst])
    assert np.sign(other["proposal deficit"]) == np.sign(outlook.weights @ (planned - proposed))
    wins, loses = planned - proposed > NOTABLE, proposed - planned > NOTABLE
    assert other["plan wins"] == pytest.approx(outlook.weights @ wins - outlook.weights @ loses)
    assert np.flatnonzero(other["proposed"]).tolist() == worst.tolist()
    lost = proposed - outlook.planner.by_particle([worst[1:]])[0]
    assert other["proposed worth"][worst[0]] ** 2 == pytest.approx(min(1, abs(outlook.weights @ lost)))


@pytest.mark.parametrize(("wins", "follows"), [(CONVINCED + 0.01, True), (CONVINCED - 0.01, False)])
def test_only_planned_states_are_labelled_while_the_plan_almost_surely_wins(monkeypatch, wins, follows):
    env = RewardSelectionEnv(problem(), 3)
    obs, info = env.reset(seed=0)
    agent = agents.make("auto")
    agent.begin(env.view())
    features = agent._context.features(obs, info)
    favourite = int(np.nanargmax(agent.scores(obs, info)))
    features[:, IN_PLAN] = np.arange(len(features)) == (favourite + 1) % len(features)
    features[:, PLAN_WINS] = wins
    monkeypatch.setattr(agent._context, "features", lambda obs, info: features)
    chosen = int(np.nanargmax(agent.scores(obs, info)))
    assert (features[chosen, IN_PLAN] == 1) == follows


def test_groups_and_data_without_rewards_are_labelled():
    grouped = problem("CliffWalk", groups=np.arange(37) // 4)
    assert len(set(play(grouped, 3))) == 3
    env = selectenv.make_env(dataset=problem().dataset.without_rewards, budget=3)
    with pytest.warns(NoRewardsWarning):
        assert len(agents.play(env, agents.make("auto")).labels) == 3
    assert len(set(play(problem(), 6, labels_per_refit=3))) == 6


def test_large_worlds_are_left_to_learned(monkeypatch):
    monkeypatch.setattr(imagine_agent, "MOST_STATES", 30)
    task = problem()
    with pytest.warns(LargeWorldWarning, match="auto imagines rewards of up to 30 states, and there are 31: 'learned'"):
        labels = play(task, 3)
    assert labels == play(task, 3, agent=agents.make("learned"))


def test_an_oracle_is_refused():
    with pytest.raises(OptionError, match=r"auto cannot imagine a learner that knows .*impute='min'"):
        play(problem(impute="dataset-min"), 3)


def test_invalid_options_and_files(tmp_path):
    with pytest.raises(OptionError):
        agents.make("auto", seed=-1)
    with pytest.raises(SavedAgentError, match="there is no file"):
        agents.make("auto", weights=str(tmp_path / "missing.npz"))
    arrays, card = load_weights(stacked_path(SHIPPED))
    for changed, text in (
        ({**card, "inputs": ["seen", "other"]}, "that this release knows"),
        ({**card, "hidden": 3}, "of another shape"),
    ):
        path = save_weights(tmp_path / "changed.npz", arrays, {k: v for k, v in changed.items() if k != "format"})
        with pytest.raises(SavedAgentError, match=text):
            read_stacked(path)
    (tmp_path / "damaged.npz").write_bytes(b"no weights")
    with pytest.raises(SavedAgentError, match="damaged"):
        agents.make("auto", weights=str(tmp_path / "damaged.npz"))


def test_the_network_without_torch_is_the_one_that_was_trained():
    torch = pytest.importorskip("torch")
    from experiments.training.stacked_training import Correction

    parts, card = read_stacked(stacked_path(SHIPPED))
    assert card["inputs"] == list(INPUTS)
    network = Correction(len(INPUTS), card["hidden"], 0.0)
    network.load_state_dict({name: torch.from_numpy(np.array(part)) for name, part in parts.items()})
    features = np.random.default_rng(0).uniform(-1, 1, (20, len(STACKED_NAMES))).astype(np.float32)
    features[:, 0] = 1
    features[15:] = 0
    columns = columns_of(card["inputs"])
    with torch.no_grad():
        wanted = network(*(torch.from_numpy(part[None]) for part in (features[:, columns], log_shares(features))))
    np.testing.assert_allclose(stacked_scores(parts, columns, features), wanted[0].numpy(), rtol=1e-4, atol=1e-4)
