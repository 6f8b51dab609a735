import pytest

from experiments.engine.cell import Result
from experiments.studies import find_study
from experiments.studies.minatar import minatar_scales as study
from experiments.studies.minatar.network_cells import GAMES


def results(returns):
    """Return results whose return is that of their game and candidate; None is the paper's scale."""
    found = []
    for cell in study.cells(1, "exact"):
        value = returns(cell.world, study.candidate_of(cell))
        if value is not None:
            found.append(Result(cell, [{"labels": "", "return": value}], 1.0))
    return found


def test_cells_are_one_per_game_and_setting():
    cells = study.cells(2, "exact")
    assert len({cell.key for cell in cells}) == len(cells) == 2 * len(GAMES) * (1 + len(study.CANDIDATES))
    for cell in cells:
        one = study.candidate_of(cell)
        preset = cell.settings["preset"]
        if one is not None:
            assert (preset["updates"], preset["transitions"]) == (one.updates, one.transitions)
            assert preset["rate"] == one.rate
            assert ("scale" in cell.settings["problem"]) == (one.rate == study.SLOW)


def test_the_smallest_sufficient_setting_is_found():
    def returns(game, one):
        if one is None:
            return 10.0
        return 8.0 if one.updates >= 20_000 and one.transitions == 500_000 else 7.99

    rows = study.rows(results(returns))
    assert study.smallest(rows, "Asterix") == study.Candidate(20_000, 500_000)
    (sentence,) = [one for one in study.findings(rows) if one.startswith("Asterix")]
    assert "the paper's scale earns 10.00" in sentence
    assert "500,000 transitions, 20,000 updates, rate 0.001 (0.80)" in sentence


@pytest.mark.parametrize(
    ("returns", "said"),
    [(lambda game, one: 10.0 if one is None else 1.0, "no candidate"), (lambda game, one: one and 5.0, None)],
)
def test_nothing_is_claimed_without_a_reference_or_a_candidate(returns, said):
    rows = study.rows(results(returns))
    assert study.smallest(rows, "Breakout") is None
    sentences = study.findings(rows)
    assert len(sentences) == (len(GAMES) if said else 0)
    assert all(said in sentence for sentence in sentences)


def test_the_figure_has_a_panel_per_game_and_the_study_is_registered():
    (figure,) = study.figures(results(lambda game, one: 10.0)).values()
    assert [axes.get_title() for axes in figure.axes] == list(GAMES)
    assert len(figure.axes[0].get_lines()) >= 4
    assert find_study("minatar-scales").seeds == 1
