"""Training of selectors on a small scale: learning, resuming, tuning, and playing without torch."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

import agents
import selectenv
from agents.errors import NotTrainedError, SavedAgentError
from agents.learned.moves import MOVES
from agents.learned.selector import LearnedSelector, score_states
from agents.learned.state_features import ALL_NAMES, SOUGHT_FEATURES, TERMINATION_FEATURES
from experiments.cli import main as cli
from experiments.training import selector_training as train_selector
from experiments.training import tune_selector
from experiments.training.selector_training import (
    SIDE_BY_SIDE,
    SelectorSettings,
    SelectorTraining,
    held_out,
    save_selector,
)
from selectenv.errors import OptionError, WeightsFileError

TINY = SelectorSettings(decisions=4 * SIDE_BY_SIDE, hidden=8, batch=16, largest=12)


@pytest.fixture(scope="module")
def selector(tmp_path_factory):
    """A file of a selector that has learned a little."""
    path = tmp_path_factory.mktemp("selector") / "selector.npz"
    run = SelectorTraining(TINY, 0)
    for _ in range(4):
        run.advance()
    save_selector(run, path)
    return run, path


def test_playing_needs_no_torch(selector):
    run, path = selector
    parts = LearnedSelector(str(path))._parts
    features = np.random.default_rng(0).random((30, len(ALL_NAMES))).astype(np.float32)
    features[:, 0] = np.arange(30) < 25
    moves = np.random.default_rng(1).random((len(MOVES), 30, 30)).astype(np.float32) / 30
    with torch.no_grad():
        wanted = run.average.module(torch.from_numpy(features)[None], torch.from_numpy(moves)[None])[0].numpy()
        more = np.pad(features, ((0, 5), (0, 0))), np.pad(moves, ((0, 0), (0, 5), (0, 5)))
        padded = run.average.module(*(torch.from_numpy(one)[None] for one in more))[0, :30].numpy()
    found = score_states(parts, features, csr_array(moves.reshape(-1, 30)))
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    np.testing.assert_allclose(padded, wanted, atol=1e-5)
    assert np.abs(score_states(parts, features, csr_array(0 * moves.reshape(-1, 30))) - found).max() > 1e-4
    order = np.random.default_rng(2).permutation(30)
    shuffled = score_states(parts, features[order], csr_array(moves[:, order][:, :, order].reshape(-1, 30)))
    np.testing.assert_allclose(shuffled, found[order], atol=1e-5)


@pytest.mark.parametrize("world", ["Graph", "TwoRooms", "CliffWalk"])
def test_a_selector_plays_in_any_world(selector, world):
    agent = LearnedSelector(str(selector[1]))
    env = selectenv.make_env(world, budget=5, dataset_size=3_000, phase="test")
    obs, info = env.reset(seed=0)
    with pytest.raises(NotTrainedError):
        agent.scores(obs, info)
    episode = agents.play(env, agent, seed=0)
    assert len(set(episode.labels.tolist())) == 5
    assert episode.asked == 0
    assert episode.labels.tolist() == agents.play(env, agent, seed=1).labels.tolist()


def test_without_a_plan_the_teacher_is_sequential_greedy():
    run = SelectorTraining(replace(TINY, teacher_share=1.0, ahead=0.0), 3)
    episode = run._episodes[0]
    gains = episode.gains()
    problem = episode.env.problem
    open_states = np.flatnonzero(problem.dataset.labelable)
    best = open_states[np.argmax([problem.performance([state]) for state in open_states])]
    assert gains[best] == np.nanmax(gains)
    assert np.isnan(gains[~problem.dataset.labelable]).all()
    none = problem.score(np.zeros(problem.n_states, bool))
    full = problem.score(problem.dataset.labelable)
    assert gains[best] == pytest.approx((problem.score([best]) - none) / (full - none))


def test_training_reduces_the_loss():
    """The loss falls below that of guessing, on the way to what a longer run shows."""
    run = SelectorTraining(replace(TINY, decisions=60 * SIDE_BY_SIDE, batch=64, rate=5e-3), 1)
    losses = [run.advance().get("train/loss", np.nan) for _ in range(60)]
    assert np.nanmean(losses[-10:]) < np.nanmean(losses[2:8]) - 0.1


def test_a_run_resumes_from_its_checkpoint(tmp_path):
    path = tmp_path / "run.npz"
    run = SelectorTraining(TINY, 0, path)
    for _ in range(2):
        run.advance()
    run.save()
    again = SelectorTraining(TINY, 0, path)
    assert again.done == 2 * SIDE_BY_SIDE
    for mine, other in ((run.scorer, again.scorer), (run.average, again.average)):
        torch.testing.assert_close(mine.state_dict(), other.state_dict())
    assert again._optimiser.state_dict()["state"].keys() == run._optimiser.state_dict()["state"].keys()
    again.advance()
    with pytest.raises(WeightsFileError, match="another run"):
        SelectorTraining(replace(TINY, hidden=16), 0, path)


def test_training_twice_gives_the_same_weights():
    weights = []
    for _ in range(2):
        run = SelectorTraining(TINY, 5)
        for _ in range(3):
            run.advance()
        weights.append(torch.cat([p.detach().ravel() for p in run.scorer.parameters()]))
    torch.testing.assert_close(weights[0], weights[1], rtol=0, atol=0)


def test_the_commands(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(train_selector, "HELD_OUT", 3)
    monkeypatch.setattr(train_selector, "RIVALS", ("guided", "sequential-greedy"))
    small = held_out(12, 3, ("guided", "sequential-greedy"))
    monkeypatch.setattr(train_selector, "held_out", lambda *_, **__: small)
    monkeypatch.setattr(tune_selector, "held_out", lambda *_, **__: small)
    out = tmp_path / "deep" / "mine.npz"
    command = ["train-selector", "--decisions", "320", "--hidden", "4", "--out", str(out), "--without-termination"]
    assert cli.main([*command, "--tensorboard", str(tmp_path / "log")]) == 0
    printed = capsys.readouterr().out
    assert "sequential-greedy" in printed
    made = LearnedSelector(str(out))
    assert made.card["without"] == [*TERMINATION_FEATURES, *SOUGHT_FEATURES]
    fresh = SelectorTraining(SelectorSettings(hidden=4), 0).scorer.encode[0].weight.detach().numpy()
    assert np.abs(made._parts["encode.0.weight"] - fresh).max() > 1e-4  # it has learned
    assert [path.name for path in out.parent.iterdir()] == ["mine.npz"]
    changed = out.stat().st_mtime_ns
    assert cli.main(command) == 0  # finished: nothing is trained again
    assert out.stat().st_mtime_ns == changed
    assert capsys.readouterr().out == printed
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = EventAccumulator(str(tmp_path / "log")).Reload()
    wanted = {"held-out/return", "behind/guided", "behind/sequential-greedy", "train/loss", "train/entropy"}
    assert wanted <= set(log.Tags()["scalars"])
    assert log.Tags()["images"] == ["selection"]
    assert cli.main(["train-selector", "--decisions", "0", "--out", str(out)]) == 1
    assert "decisions must be a whole number" in capsys.readouterr().err
    assert cli.main(["train-selector", "--out", str(tmp_path)]) == 1
    assert "is a directory" in capsys.readouterr().err


def test_tuning_resumes_and_prunes(tmp_path, capsys, monkeypatch):
    import optuna
    from optuna.storages.journal import JournalFileBackend

    small = held_out(12, 3, ())
    monkeypatch.setattr(tune_selector, "held_out", lambda *_, **__: small)

    class AllButTheFirst(optuna.pruners.BasePruner):
        def prune(self, study, trial):
            return trial.number > 0

    monkeypatch.setattr(optuna.pruners, "MedianPruner", lambda **_: AllButTheFirst())
    storage = tmp_path / "tuning.log"
    for trials in ("1", "3"):  # the second resumes the first
        assert cli.main(["tune-selector", "--trials", trials, "--decisions", "320", "--storage", str(storage)]) == 0
    trials = optuna.load_study(
        study_name=None, storage=optuna.storages.JournalStorage(JournalFileBackend(str(storage)))
    ).trials
    assert len({trial.params["rate"] for trial in trials}) == 3  # going on repeats nothing
    assert [trial.state.name for trial in trials] == ["COMPLETE", "PRUNED", "PRUNED"]
    assert {path.name for path in tmp_path.iterdir()} == {"tuning.log", "tuning.log.filelock"}
    foreign = tmp_path / "foreign.log"
    foreign.write_text("no journal\n" * 3)
    assert cli.main(["tune-selector", "--storage", str(foreign)]) == 1
    assert "cannot be used: line 1" in capsys.readouterr().err


def test_rivals_are_measured_alike():
    worlds = held_out(20, 4, ("uniform", "sequential-greedy"))
    assert worlds.rivals["sequential-greedy"] > worlds.rivals["uniform"]
    assert worlds.measure(agents.make("uniform")) == worlds.rivals["uniform"]


def test_invalid_files_and_settings_are_refused(selector, tmp_path):
    _, path = selector
    with pytest.raises(SavedAgentError, match="there is no selector"):
        LearnedSelector(str(tmp_path / "none.npz"))
    with pytest.raises(OptionError):
        LearnedSelector(3)
    from selectenv.io.weights import load_weights, save_weights

    arrays, card = load_weights(path)
    save_weights(tmp_path / "features.npz", arrays, {**card, "features": ["other"]})
    save_weights(tmp_path / "shape.npz", arrays, {**card, "hidden": 9})
    (tmp_path / "cut.npz").write_bytes(path.read_bytes()[:500])
    for name, text in (
        ("features", "input features that this release knows"),
        ("shape", "another shape"),
        ("cut", "damaged"),
    ):
        with pytest.raises(SavedAgentError, match=text):
            LearnedSelector(str(tmp_path / f"{name}.npz"))
    for wrong in (
        {"decisions": 0},
        {"rate": 0.0},
        {"temperature": 0.0},
        {"teacher_share": 2.0},
        {"batch": 0},
        {"updates": 0},
    ):
        with pytest.raises(OptionError):
            SelectorSettings(**wrong)
