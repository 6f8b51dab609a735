"""The terminal shows what cannot be told, and every count of agreement beside its control."""

from dataclasses import replace

from experiments.analysis.game_verdicts import NOT_RUN, SAME_SHARE, GameVerdict
from experiments.analysis.verdicts import AGREES, CANNOT_BE_TOLD, DIFFERS, Verdict
from experiments.cli.study_commands import comparison_table, verdict_counts
from tests.experiments.analysis.synthetic_rows import UNTOLD, row, told

ROWS = [
    row(mean=1.0, verdict=told(AGREES), published=1.0),
    row(mean=1.0, verdict=Verdict(AGREES, control=UNTOLD), published=1.0),
    row(mean=1.0, strategy="guided", verdict=told(DIFFERS, "why"), published=2.0),
    row(mean=1.0, strategy="terminal"),
]


def test_counts_by_strategy():
    header, _, *lines = verdict_counts(ROWS).splitlines()
    names = "strategy agrees differs impossible cannot be told agrees by the rule swapped"
    assert header.split() == names.split()
    assert [" ".join(line.split()) for line in lines] == [
        "uniform 1 0 0 1 2 of 2 4 of 8",
        "guided 0 1 0 0 0 of 1 1 of 4",
    ]


def test_counts_of_games_have_their_own_outcomes():
    games = [
        row(mean=1.0, strategy="guided", verdict=GameVerdict(outcome, control=UNTOLD), published=1.0)
        for outcome in (AGREES, SAME_SHARE, SAME_SHARE, DIFFERS, CANNOT_BE_TOLD)
    ]
    games.append(row(strategy="es-1000", verdict=GameVerdict(NOT_RUN, "too long"), published=1.0, note=NOT_RUN))
    header, _, *lines = verdict_counts(games).splitlines()
    names = "strategy agrees same share differs cannot be told not run swapped"
    assert header.split() == names.split()
    assert [" ".join(line.split()) for line in lines] == ["guided 1 2 1 1 0 15 of 20", "es-1000 0 0 0 0 1 0 of 0"]
    assert comparison_table(games).splitlines()[-1].endswith("not run             1.000  not run: too long")


def test_verdicts_row_by_row():
    shared, _, _, _, *lines = comparison_table(ROWS).splitlines()
    assert shared == "metric: return"
    endings = ("  agrees", "  cannot be told: agrees, but so do 3 of the 4", "  others", "  differs: why", "0.000")
    for line, ending in zip(lines, endings, strict=True):
        assert line.endswith(ending)


def test_long_verdicts_fit_100_columns():
    long = row("TwoRoomsTrap", strategy="visitation-on-policy", mean=-1234.5, gap=1234.5, published=-1000.0)
    long = replace(long, published_error=123.456, verdict=told(DIFFERS, "a reason of many words " * 5))
    for setting in ("uds", "decay linear, temperature 6.0"):
        printed = comparison_table([*ROWS, replace(long, setting=setting), replace(long, metric="test")])
        assert max(map(len, printed.splitlines())) <= 100
        assert " ".join(printed.split()).count("reason") == 10


def test_without_published_numbers_there_is_no_second_table():
    assert verdict_counts([row(mean=1.0)]) == ""
    assert comparison_table([row(mean=1.0)]).splitlines()[2].split() == ["world", "labels", "strategy", "ours", "+-"]
