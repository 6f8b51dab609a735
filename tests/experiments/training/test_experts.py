"""Training of experts: checkpoints, resuming, cards; and the tabular expert, which has no network."""

import numpy as np
import pytest

from experiments.cli import main as cli
from experiments.training.dqn_expert import GamesVecEnv, train_expert
from experiments.training.table_expert import merge, train_tabular_expert
from selectenv.datasets.minatar_collection import collect_play, play_spec
from selectenv.domains.minatar.experts import load_expert
from selectenv.domains.minatar.games import MinAtarWorld
from selectenv.errors import OptionError, WeightsFileError

TINY = {"learning_starts": 64, "buffer_size": 800, "batch_size": 8, "target_update_interval": 100}


def train(folder, steps, **options):
    lines = []
    card = train_expert("Breakout", steps, folder, checkpoint_every=400, settings=TINY, show=lines.append, **options)
    return card, lines


def test_an_expert_is_trained_saved_and_resumed(tmp_path):
    card, lines = train(tmp_path, 800)
    assert [point[0] for point in card["curve"]] == [400, 800]
    assert card["episodes"] == 100
    assert card["return_error"] > 0
    assert card["command"] == "selectenv train-expert Breakout --steps 800 --seed 0"
    assert len(lines) == 2
    world = MinAtarWorld("Breakout")
    expert = load_expert(world, str(tmp_path / "breakout.npz"))
    assert expert.card["return"] == card["return"]
    assert expert.actions(np.zeros((2, *world.shape), bool)).shape == (2,)
    assert list((tmp_path / "tb").rglob("events.*"))
    longer, lines = train(tmp_path, 1_600)
    assert lines[0] == "Breakout: resuming from 800 steps"
    assert [point[0] for point in longer["curve"]] == [400, 800, 1_200, 1_600]
    assert longer["curve"][:2] == card["curve"]
    best = max(point[1] for point in longer["curve"])
    assert dict(map(reversed, [point[:2] for point in reversed(longer["curve"])]))[best] == longer["steps_of_best"]
    again, lines = train(tmp_path, 1_600)
    assert again == longer  # nothing left to do
    assert not list(tmp_path.glob(".*"))


def test_the_same_seed_trains_the_same_expert(tmp_path):
    one, other = (train(tmp_path / name, 400)[0] for name in ("one", "other"))
    assert one == other


def test_a_checkpoint_holds_all_that_training_needs(tmp_path):
    """Weights, optimiser and buffer are as they were."""
    from stable_baselines3 import DQN
    from stable_baselines3.common.vec_env import VecMonitor

    from experiments.training.dqn_expert import _Features, load_checkpoint, save_checkpoint

    def model():
        env = VecMonitor(GamesVecEnv(MinAtarWorld("Breakout"), 8, 0))
        kwargs = {"features_extractor_class": _Features, "net_arch": [], "optimizer_kwargs": {"fused": True}}
        return DQN("MlpPolicy", env, policy_kwargs=kwargs, device="cpu", train_freq=1, n_steps=3, **TINY)

    trained, fresh = model(), model()
    trained.learn(1_000)
    run = {"seed": 0}
    save_checkpoint(trained, [(1_000, 1.5, 0.1)], tmp_path, run)
    trained.replay_buffer.dones[trained.replay_buffer.pos - 1] = 1  # nothing follows on from where a run stopped
    trained.replay_buffer.timeouts[trained.replay_buffer.pos - 1] = 1
    assert load_checkpoint(fresh, tmp_path, run) == [(1_000, 1.5, 0.1)]
    with pytest.raises(WeightsFileError, match="belongs to another run"):
        load_checkpoint(fresh, tmp_path, {"seed": 1})
    for one, other in zip(trained.policy.parameters(), fresh.policy.parameters(), strict=True):
        assert (one == other).all()
    ours, theirs = (m.policy.optimizer.state_dict()["state"] for m in (fresh, trained))
    assert ours.keys() == theirs.keys()
    for number, state in theirs.items():
        assert all((ours[number][name] == value).all() for name, value in state.items())
    for name in ("observations", "next_observations", "actions", "rewards", "dones", "timeouts"):
        np.testing.assert_array_equal(getattr(trained.replay_buffer, name), getattr(fresh.replay_buffer, name))
    assert (fresh.replay_buffer.pos, fresh.replay_buffer.full) == (trained.replay_buffer.pos, True)
    assert fresh.num_timesteps == trained.num_timesteps


def test_bad_training(tmp_path):
    with pytest.raises(OptionError, match="steps"):
        train_expert("Breakout", 0, tmp_path)
    train(tmp_path, 400)
    whole = (tmp_path / "checkpoint.npz").read_bytes()
    with pytest.raises(WeightsFileError, match="belongs to another run"):
        train(tmp_path, 800, seed=1)
    for damaged in (b"", b"damaged", whole[: len(whole) // 2]):
        (tmp_path / "checkpoint.npz").write_bytes(damaged)
        with pytest.raises(WeightsFileError, match=r"checkpoint.npz' is damaged or belongs to another run"):
            train(tmp_path, 800)


def test_games_as_a_vector_environment():
    env = GamesVecEnv(MinAtarWorld("Freeway", horizon=3), 2, 0)
    assert env.observation_space.contains(env.reset()[0])
    for _ in range(3):
        obs, reward, done, infos = env.step(np.zeros(2, np.int64))
    assert done.all()
    assert all(info["TimeLimit.truncated"] for info in infos)
    assert infos[0]["terminal_observation"].shape == obs[0].shape
    assert reward.shape == (2,)
    assert env.env_is_wrapped(object) == [False, False]
    for refused in (lambda: env.set_attr("x", 1), lambda: env.env_method("x")):
        with pytest.raises(AttributeError):
            refused()


def test_a_table_grows_into_an_expert(tmp_path):
    path = tmp_path / "table.npz"
    card = train_tabular_expert("Breakout", path, rounds=4, size=6_000)
    assert card["curve"][-1][1] > 3 * card["curve"][0][1]  # the last rounds earn more than chance
    assert card["return"] > 1.5
    expert = load_expert(MinAtarWorld("Breakout"), str(path))
    assert expert.card["return"] == card["return"]
    with pytest.raises(OptionError, match="rounds"):
        train_tabular_expert("Breakout", path, rounds=0)


def test_merged_data_are_the_data_of_both():
    world = MinAtarWorld("Breakout")
    one, other = (
        collect_play(world, play_spec(world, expert_share=0.0, mixture="all", expert=None, size=900, seed=s), None)
        for s in (0, 1)
    )
    both = merge(one, other)
    assert both.n_states == len(set(one.ids.tolist()) | set(other.ids.tolist()))
    ids = np.concatenate([one.ids[one.state], other.ids[other.state]])
    np.testing.assert_array_equal(both.ids[both.state], ids)
    np.testing.assert_array_equal(both.images[both.state[900:]], other.images[other.state])
    following = np.concatenate([np.where(d.next_state < 0, -1, d.ids[d.next_state]) for d in (one, other)])
    np.testing.assert_array_equal(np.where(both.next_state < 0, -1, both.ids[both.next_state]), following)


def test_shipped_experts_are_shown(tmp_path, capsys):
    assert cli.main(["experts", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    for game in ("Breakout", "Freeway", "Seaquest", "Asterix"):
        assert f"selectenv train-expert {game}" in printed
    assert (tmp_path / "experts.png").read_bytes()[:4] == b"\x89PNG"


def test_the_command(tmp_path, capsys):
    arguments = ["train-expert", "Breakout", "--tabular", "--steps", "3000", "--out", str(tmp_path)]
    assert cli.main(arguments) == 0
    assert "over 100 episodes" in capsys.readouterr().out
    assert (tmp_path / "breakout" / "breakout-tabular.npz").exists()
    assert cli.main(["train-expert", "Pong"]) == 1
    assert "unknown game 'Pong'; allowed: Breakout" in capsys.readouterr().err
    assert cli.main(["train-expert", "Breakout", "--steps", "0"]) == 1
    assert "steps must be a whole number" in capsys.readouterr().err
