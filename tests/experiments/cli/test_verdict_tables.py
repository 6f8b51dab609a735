"""The terminal shows what cannot be told, and every count of agreement beside its control."""

from experiments.analysis.verdicts import AGREES, DIFFERS, Verdict
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


def test_verdicts_row_by_row():
    _, _, *lines = comparison_table(ROWS).splitlines()
    endings = ("  agrees", "  cannot be told: agrees, but so do 3 of the 4 others", "  differs: why", "0.000")
    for line, ending in zip(lines, endings, strict=True):
        assert line.endswith(ending)
