"""The tabular expert, the shipped experts and the command that trains them."""

import numpy as np
import pytest

from experiments.cli import main as cli
from experiments.training import expert_returns
from experiments.training.table_expert import merge, train_tabular_expert
from selectenv.datasets.minatar_collection import collect_play, play_spec
from selectenv.domains.minatar.experts import load_expert
from selectenv.domains.minatar.games import MinAtarWorld
from selectenv.errors import OptionError


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
    assert "unique states (reward) of 1,000,000 transitions, by the share of random actions" in printed
    assert "99,254" in printed
    assert (tmp_path / "experts.png").read_bytes()[:4] == b"\x89PNG"


def test_the_command(tmp_path, capsys, monkeypatch):
    arguments = ["train-expert", "Breakout", "--recipe", "tabular", "--steps", "3000", "--out", str(tmp_path)]
    assert cli.main(arguments) == 0
    assert "over 100 episodes" in capsys.readouterr().out
    assert (tmp_path / "breakout-0" / "breakout-tabular.npz").exists()
    monkeypatch.setattr(expert_returns, "RANDOM_SHARES", (1.0,))
    monkeypatch.setattr(expert_returns, "DATA_SIZE", 500)
    arguments = ["train-expert", "Asterix", "--steps", "300", "--seed", "3", "--out", str(tmp_path)]
    assert cli.main(arguments) == 0
    expert = load_expert(MinAtarWorld("Asterix"), str(tmp_path / "asterix-3" / "asterix.npz"))
    assert expert.card["mixtures"][0][0] == 1.0
    assert f"return {expert.card['return']:.2f}" in capsys.readouterr().out
    assert cli.main(["train-expert", "Pong"]) == 1
    assert "unknown world 'Pong'; allowed: Breakout" in capsys.readouterr().err
    assert cli.main(["train-expert", "Breakout", "--steps", "0"]) == 1
    assert "steps must be a whole number" in capsys.readouterr().err
