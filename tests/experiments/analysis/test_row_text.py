"""Every number of a row stands in its column."""

import numpy as np

from experiments.analysis.game_verdicts import NOT_RUN, SAME_SHARE, GameVerdict
from experiments.analysis.row_text import (
    CSV_COLUMNS,
    REPORT_COLUMNS,
    csv_cells,
    number_text,
    report_cells,
    report_table,
    with_error,
)
from experiments.analysis.verdicts import Verdict
from tests.experiments.analysis.synthetic_rows import UNTOLD, row, summary, told

FULL = row(
    "Tree",
    9,
    "guided",
    "test",
    ours=summary(2.74, 0.151, low=2.44, high=3.03, iqm=2.82, improvement=0.447),
    gap=4.26,
    published=2.949,
    published_error=0.137,
    verdict=told("differs", "unexplained"),
    setting="uds",
)
MISSING = row(
    "Graph", 3, "brute-force", "train", note="not enumerated", verdict=Verdict("not enumerated", "best known 7")
)


def test_the_columns_of_the_csv_file():
    assert ",".join(CSV_COLUMNS) == (
        "world,setting,labels,strategy,metric,ours,std. error,95 % interval,IQM,gap,better than uniform,published,"
        "its error,by the rule,swapped,verdict"
    )
    assert ",".join(csv_cells(FULL)) == (
        "Tree,uds,9,guided,test,2.740,0.151,2.440 to 3.030,2.820,4.260,0.447,2.949,0.137,differs,1 of 4,"
        "differs: unexplained"
    )
    assert ",".join(csv_cells(MISSING)) == (
        "Graph,,3,brute-force,train,not enumerated,,,,,,,,,,not enumerated: best known 7"
    )


def test_the_columns_of_the_report():
    assert dict(zip(REPORT_COLUMNS, report_cells(FULL), strict=True)) == {
        "world": "Tree",
        "setting": "uds",
        "labels": "9",
        "strategy": "guided",
        "metric": "test",
        "ours": "2.740 ± 0.151",
        "published": "2.949 ± 0.137",
        "verdict": "differs: unexplained",
        "swapped": "1 of 4",
        "gap": "4.260",
        "95 % interval": "2.440 to 3.030",
        "IQM": "2.820",
        "better than uniform": "0.447",
    }


def test_columns_without_an_entry_are_left_out():
    plain = row(mean=1.0)
    table = report_table([plain, MISSING])
    assert table.columns == ["world", "labels", "strategy", "metric", "ours", "verdict", "95 % interval", "IQM"]
    assert table.lines == [
        ("none", ["Graph", "3", "uniform", "return", "1.000 ± 0.000", "", "1.000 to 1.000", "1.000"]),
        (
            "not-enumerated",
            ["Graph", "3", "brute-force", "train", "not enumerated", "not enumerated: best known 7", "", ""],
        ),
    ]


def test_figures_of_games_that_were_not_run():
    missing = row("Breakout", "15 %", "guided", verdict=GameVerdict(NOT_RUN, "too long"), note=NOT_RUN, published=7.13)
    assert csv_cells(missing)[5:] == [NOT_RUN, "", "", "", "", "", "7.130", "", "", "", "not run: too long"]
    assert report_table([missing]).lines[0][0] == "not-run"
    shared = row("Breakout", "15 %", "guided", mean=7.0, verdict=GameVerdict(SAME_SHARE, "0.5", UNTOLD), published=9.0)
    assert csv_cells(shared)[-3:] == ["same share", "3 of 4", "same share: 0.5"]
    assert report_table([shared]).lines[0][0] == "same-share"


def test_numbers_have_three_decimals():
    texts = [number_text(value) for value in (1.0, np.float64(-0.00051), None, float("nan"), 13731)]
    assert texts == ["1.000", "-0.001", "", "", "13731.000"]


def test_errors_stand_beside_their_means():
    assert with_error("17.750", "") == "17.750"
    assert with_error("2.949", "0.137") == "2.949 ± 0.137"


def test_what_cannot_be_told_is_shown_with_its_control():
    cells = csv_cells(row(mean=1.0, verdict=Verdict("agrees", control=UNTOLD)))
    assert cells[-3:] == ["agrees", "3 of 4", "cannot be told: agrees, but so do 3 of the 4 others"]
    assert csv_cells(row(mean=1.0))[-3:] == ["", "", ""]
    table = report_table([row(mean=1.0, verdict=Verdict("agrees", control=UNTOLD))])
    assert table.lines[0][0] == "cannot-be-told"
