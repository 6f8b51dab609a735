"""The experts that ship with the package: a table of their cards and a figure of their learning curves."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.analysis.figures import new_figure, save
from experiments.cli.tables import table
from experiments.protocol.published import unique_states
from experiments.training.expert_returns import RANDOM_SHARES
from selectenv.domains import gym_experts
from selectenv.domains.minatar.experts import FOLDER, SHIPPED
from selectenv.domains.minatar.games import GAMES
from selectenv.io.weights import load_weights


def shipped_cards() -> dict[tuple[str, str], dict[str, Any]]:
    """Return the cards of the experts by world and expert name."""
    found = {
        (game, name): load_weights(path)[1]
        for game in GAMES
        for name, file in SHIPPED.items()
        if (path := FOLDER / file.format(game=game.lower())).exists()
    }
    for path in sorted(gym_experts.FOLDER.glob("*.npz")):
        card = load_weights(path)[1]
        found[card["env"].rpartition("-")[0], gym_experts.SHIPPED] = card
    return found


def cards_table() -> str:
    """Return a table of the return of every expert and the command that trained it."""
    rows = [
        (
            world,
            name,
            f"{card['return']:.2f}",
            f"{card['return_error']:.2f}",
            card["episodes"],
            f"{card['steps_trained']:,}",
            card["command"],
        )
        for (world, name), card in shipped_cards().items()
    ]
    return table(("world", "expert", "return", "+-", "episodes", "steps", "made by"), rows)


def mixtures_table() -> str:
    """Return a table of the data that mixtures of each expert collect, with the published numbers for Breakout."""
    published = unique_states()
    totals = {0.5: "69,700"}
    rows = [
        (
            "Breakout",
            "as in the paper",
            *(f"{published[share]:,} ({totals.get(share, '?')})" for share in RANDOM_SHARES),
        )
    ]
    rows += [
        (game, name, *(f"{int(states):,} ({reward:,.0f})" for _, states, reward in card["mixtures"]))
        for (game, name), card in shipped_cards().items()
        if "mixtures" in card
    ]
    return table(("game", "expert", *(f"{share:g}" for share in RANDOM_SHARES)), rows)


def curves(path: Path, worlds: Sequence[str] = GAMES) -> None:
    """Draw return against training steps, one panel per world; the curves include exploration."""
    cards = shipped_cards()
    figure = new_figure(3.2 * len(worlds), 2.8)
    for i, world in enumerate(worlds):
        axes = figure.add_subplot(1, len(worlds), i + 1)
        for (owner, name), card in cards.items():
            if owner == world:
                steps, mean = [point[0] / 1e6 for point in card["curve"]], [point[1] for point in card["curve"]]
                axes.plot(steps, mean, label=name, linewidth=1)
                axes.axhline(card["return"], linestyle=":", linewidth=1, color=axes.lines[-1].get_color())
        axes.set(title=world, xlabel="million steps", ylabel="return" if i == 0 else "")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    save(figure, path)
