"""A verdict counts only where there is something that it judges."""

import math

from experiments.analysis.row import mean_of
from experiments.analysis.verdicts import Verdict
from tests.experiments.analysis.synthetic_rows import row


def test_a_row_is_judged_if_it_has_a_number_of_ours():
    verdict = Verdict("agrees")
    assert row(mean=1.0, verdict=verdict).judged is verdict
    assert row(verdict=verdict, note="not enumerated").judged is None
    assert row(mean=1.0).judged is None


def test_the_mean_over_the_rows_with_given_fields():
    rows = [row(mean=1.0), row(mean=3.0, labels=6), row(mean=10.0, strategy="guided"), row(strategy="uniform")]
    assert mean_of(rows, strategy="uniform") == 2.0
    assert mean_of(rows, strategy="uniform", labels=6) == 3.0
    assert mean_of(iter(rows)) == 14 / 3
    assert math.isnan(mean_of(rows, strategy="visitation"))
