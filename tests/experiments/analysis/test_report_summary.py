"""The summary of the report: counts, words and reasons, study by study."""

import pytest

from experiments.analysis.game_verdicts import NOT_RUN, SAME_SHARE, GameVerdict
from experiments.analysis.gathering import StudyResults
from experiments.analysis.report_summary import HARDLY, overall, reasons_of, summary_line, summary_lines
from experiments.analysis.verdicts import Control, Verdict
from tests.experiments.analysis.committed_rows import committed_rows
from tests.experiments.analysis.synthetic_rows import UNTOLD, row, told
from tests.experiments.analysis.test_report import STUDIES


def test_the_line_of_a_study():
    rows = [
        row(mean=1.0, verdict=told("agrees")),
        row(mean=1.0, verdict=told("agrees"), labels=6),
        row(mean=1.0, verdict=told("differs", "why")),
        row(mean=1.0, verdict=told("impossible", "too large"), strategy="guided"),
        row(mean=1.0, verdict=Verdict("agrees", "", UNTOLD)),
        row(mean=1.0),
    ]
    line = summary_line("study", "What?", rows)
    assert (line.study, line.question, line.overall) == ("study", "What?", "agrees in part")
    assert (line.compared, line.told, line.agree, line.not_run) == (5, 4, 2, 0)
    assert (line.swapped.swapped_agree, line.swapped.swapped_cells) == (4, 16)
    assert line.strategies == ["uniform: 2 of 3", "guided: 0 of 1"]
    assert line.reasons == ["why (1)", "too large (1)"]


def test_games_count_the_same_share_and_what_was_not_run():
    control = Control(1, 2)
    rows = [
        row(world="Breakout", mean=1.0, verdict=GameVerdict("agrees", "", control)),
        row(world="Breakout", mean=1.0, verdict=GameVerdict(SAME_SHARE, "", control)),
        row(world="Breakout", mean=1.0, verdict=GameVerdict("cannot be told", "", control)),
        row(world="Breakout", verdict=GameVerdict(NOT_RUN)),
    ]
    line = summary_line("games", "What?", rows)
    assert (line.compared, line.told, line.agree, line.not_run, line.overall) == (3, 2, 2, 1, "agrees")
    assert (line.swapped.swapped_agree, line.swapped.swapped_cells) == (2, 4)


@pytest.mark.parametrize(
    ("agree", "told_", "compared", "words"),
    [
        (9, 10, 10, "agrees"),
        (8, 10, 10, "mostly agrees"),
        (7, 10, 10, "mostly agrees"),
        (6, 10, 10, "agrees in part"),
        (2, 10, 10, "mostly differs"),
        (0, 10, 100, "mostly differs"),
        (9, 9, 100, HARDLY),
        (0, 0, 100, "cannot be told"),
        (0, 0, 0, NOT_RUN),
    ],
)
def test_words(agree, told_, compared, words):
    assert overall(agree, told_, compared) == words


def test_reasons_are_counted_without_the_shares_of_their_rows():
    shares = "(0.36 of the return with full labels, published 0.55)"
    rows = [row(mean=1.0, verdict=GameVerdict("differs", f"another expert {shares}"))] * 3
    rows += [row(mean=1.0, verdict=told("differs", reason)) for reason in ("b", "b", "c", "d", "e")]
    assert reasons_of(rows) == ["another expert (3)", "b (2)", "c (1)", "other reasons (2)"]


def test_only_studies_with_published_numbers_have_a_line():
    found = [
        StudyResults(STUDIES[0], [], [row(mean=1.0, verdict=told("agrees"))]),
        StudyResults(STUDIES[1], [], [row(mean=1.0)]),
    ]
    assert [line.study for line in summary_lines(found)] == ["heuristics-x"]


def test_the_committed_results_give_the_headline_of_the_readme():
    """508 numbers of tabular worlds can be told; 367 of them agree."""
    tabular = [
        summary_line(name, "", rows)
        for name, rows in committed_rows().items()
        if name.startswith(("heuristics", "trained", "es-", "initial"))
    ]
    assert (sum(line.told for line in tabular), sum(line.agree for line in tabular)) == (508, 367)
    assert sum(line.swapped.swapped_agree for line in tabular) == 362
