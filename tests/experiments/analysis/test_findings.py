"""The sentences of every study say what its rows say."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.studies import find_studies
from experiments.studies.breakout.behaviour_mixtures import RANDOM_SHARES
from tests.experiments.analysis.synthetic_rows import row, summary

STUDIES = find_studies()


def of_game(labels, strategy, mean, metric="return", setting="paper", world="Breakout", **more):
    return row(world, labels, strategy, metric, mean, setting=setting, **more)


def near(mean):
    return summary(mean, low=mean - 0.1, high=mean + 0.1, runs=5)


def runs(labels, strategy, mean, error=0.1, **more):
    """A row of several runs with a standard error."""
    return of_game(labels, strategy, None, ours=summary(mean, error, runs=3), **more)


MIXTURES = [
    runs(labels, "guided", mean, setting=f"random share {share:g}")
    for share, means in zip(RANDOM_SHARES, ((1, 1, 2), (8, 9, 9), (2, 6, 9), (1, 3, 4), (1, 2, 3)), strict=True)
    for labels, mean in zip(("0 %", "15 %", "100 %"), means, strict=True)
]
MIXTURE_FINDINGS = [
    "the data matter more than the labels: holds; full labels earn 2.00 (random share 0), 9.00 (random share 0.3), "
    "9.00 (random share 0.5), 4.00 (random share 0.7), 3.00 (random share 1), a difference of +7.00 +- 0.14 between "
    "the best and the worst data, and of +1.20 +- 0.06 between full labels and 15 % of them",
    "guided with 15 % of the labels earns more than without labels: random share 0 cannot be told (+0.00 +- 0.14), "
    "random share 0.3 holds (+1.00 +- 0.14), random share 0.5 holds (+4.00 +- 0.14), random share 0.7 holds (+2.00 +- "
    "0.14), random share 1 holds (+1.00 +- 0.14)",
]


CASES = {
    "breakout-heuristics": (
        [
            of_game("15 %", "uniform", 1.0),
            of_game("30 %", "uniform", 2.0),
            of_game("15 %", "visitation", 3.0),
            of_game("15 %", "guided", 4.0),
            of_game("15 %", "terminal-guided", 5.25),
            of_game("15 %", "terminal", 99.0),
            of_game("15 %", "uniform", 7.0, setting="paper, tabular expert"),
        ],
        [
            "paper, mean over budgets: uniform 1.50, visitation 3.00, guided 4.00, terminal-guided 5.25",
            "paper, tabular expert, mean over budgets: uniform 7.00",
        ],
    ),
    "breakout-rewards": (
        [
            of_game("15 %", "visitation", 60936.98, "reward inside, of 69,700"),
            of_game("15 %", "uniform", 10039.34, "reward inside, of 69,700"),
            of_game("44 %", "uniform", 99999.0, "reward inside, of 69,700"),
        ],
        ["15 % labelled: visitation finds 60,937 of reward, uniform 10,039"],
    ),
    "breakout-trained": (
        [
            runs("15 %", "es-1000", 9.0),
            runs("15 %", "es-1000", 8.0, metric="fresh"),
            runs("15 %", "guided", 7.0, metric="fresh"),
            runs("15 %", "guided", 6.0),
            runs("30 %", "guided", 5.0, metric="fresh"),
            runs("", "full labels", 11.0, metric="fresh"),
        ],
        [
            "paper, fresh episodes, 15 % labelled: es-1000 8.00 (on its own episodes 9.00), guided 7.00, "
            "all states labelled 11.00",
            "paper: guided without an evaluator earns as much as es-1000 (table, fresh episodes): does not hold; "
            "over 1 budget es-1000 8.00, guided 7.00 (difference +1.00 +- 0.14)",
        ],
    ),
    "breakout-coverage": (
        [
            of_game("", f"random share {share:g}", mean + i, metric)
            for i, share in enumerate(RANDOM_SHARES)
            for metric, mean in (("unique states", 1000.0), ("return of full labels", 5.0), ("other", 99.0))
        ],
        [
            "all states labelled, table: random share 0: 1,000 states, return 5.0; random share 0.3: 1,001 states, "
            "return 6.0; random share 0.5: 1,002 states, return 7.0; random share 0.7: 1,003 states, return 8.0; "
            "random share 1: 1,004 states, return 9.0",
            "rank correlation of unique states and the return with full labels over the five mixtures: 1.00 (published "
            "0.00)",
        ],
    ),
    "breakout-behaviour-uds": (MIXTURES, MIXTURE_FINDINGS),
    "breakout-behaviour-adapted": (
        MIXTURES[:-1],  # a mixture is missing
        [MIXTURE_FINDINGS[1].rpartition(", ")[0]],
    ),
    "breakout-mixtures": (
        [replace(one, setting=f"adapted, {one.setting}") for one in MIXTURES]
        + [replace(MIXTURES[0], setting="uds, random share 0.5")],
        [f"adapted: {sentence}" for sentence in MIXTURE_FINDINGS],
    ),
    "breakout-experts": (
        [
            *(
                of_game("100 %", name, mean, metric, f"random share {share}")
                for share, metric, means in (
                    (0.5, "return", (10.0, 18.0, 17.75)),
                    (0.5, "last weights", (8.0, 9.0, 17.0)),
                    (0.5, "exact table", (18.0, 19.0)),
                    (0.3, "return", (18.0,)),
                )
                for name, mean in zip("abc", means, strict=False)
            )
        ],
        [
            "random share 0.5, published 17.75 with full labels: a network earns 10.00 to 18.00 over 3 experts (median "
            "17.75), 2 of them at least as much as published; its last weights earn 8.00 to 17.00 over 3 experts "
            "(median 9.00), none of them at least as much as published; an exact table on the data of kept weights "
            "earns 18.00 to 19.00 over 2 experts (median 18.50), all of them at least as much as published",
            "random share 0.3, published 17.82 with full labels: a network earns 18.00 to 18.00 over 1 expert (median "
            "18.00), all of them at least as much as published",
        ],
    ),
    "breakout-iql": (
        [
            of_game(labels, strategy, mean, metric, "fast")
            for labels in ("15 %",)
            for strategy, table, network in (("a", 1.0, 2.0), ("b", 2.0, 6.0), ("c", 3.0, 4.0), ("full labels", 9, 0))
            for metric, mean in (("exact", table), ("return", network))
        ],
        ["fast: rank correlation of table and network over strategies: all budgets 0.50 (3), 15 % 0.50 (3)"],
    ),
    "minatar-cost": (
        [
            row("Seaquest", "60 %", "visitation", mean=3.14, setting="0 calls"),
            row("Seaquest", "60 %", "guided", ours=summary(4.4, 0.1, runs=3), setting="0 calls"),
            row("Seaquest", "60 %", "best-of", ours=summary(4.0, 0.1, runs=3), setting="2 calls"),
            row("Seaquest", "60 %", "best-of", ours=summary(4.5, 0.1, runs=3), setting="8 calls"),
            row("Seaquest", "", "full labels", ours=summary(10.0, 0.1, runs=3), setting="0 calls"),
        ],
        [
            "Seaquest, 60 % labelled: visitation 3.1 (0 calls), guided 4.4 (0 calls), best-of 4.0 (2 calls), "
            "best-of 4.5 (8 calls), full labels 10.0 (0 calls)",
            "Seaquest: guided without an evaluator earns as much as a search with 8 calls: holds (difference +0.10 +- "
            "0.14)",
        ],
    ),
    "minatar-heuristics": (
        [
            runs("15 %", "uniform", 1.0, setting="fast"),
            runs("30 %", "uniform", 2.0, setting="fast"),
            runs("45 %", "uniform", 99.0, setting="fast"),
            runs("15 %", "visitation", 2.0, setting="fast"),
            runs("30 %", "visitation", 3.0, setting="fast"),
            runs("15 %", "guided", 3.0, setting="fast"),
            runs("30 %", "guided", 5.0, setting="fast"),
            runs("", "full labels", 7.0, setting="fast"),
            runs("", "behaviour cloning", 6.0, setting="fast"),
            runs("15 %", "guided", 99.0, setting="fast", metric="last weights"),
            of_game("45 %", "guided", None, setting="fast"),
        ],
        [
            "Breakout, fast, mean over 15 %, 30 %: uniform 1.50, visitation 2.50, guided 4.00; all states labelled "
            "7.00",
            "Breakout, fast: visitation earns more than uniform: holds; over 2 budgets visitation 2.50, uniform 1.50 "
            "(difference +1.00 +- 0.10)",
            "Breakout, fast: guided with 15 % of the labels earns more than behaviour cloning: does not hold; "
            "guided 3.00, behaviour cloning 6.00 (difference -3.00 +- 0.14)",
        ],
    ),
    "minatar-warm-start": (
        [
            runs(labels, way, mean, setting="the same labels")
            for labels, way, mean in (
                ("30 %", "warm start", 9.0),
                ("30 %", "from scratch", 10.0),
                ("90 %", "warm start", 19.0),
                ("90 %", "from scratch", 20.0),
            )
        ]
        + [runs("15 %", "warm start", 5.0, setting="labels of guided")],
        [
            "Breakout, the same labels: warm starts earn as much as training from scratch: does not hold; 30 % 9.00 "
            "against 10.00, 90 % 19.00 against 20.00 (lost on average: +1.00 +- 0.10)"
        ],
    ),
    "minatar-trained": (
        [
            *(
                runs("", name, mean)
                for name, mean in (("full labels", 7.0), ("behaviour cloning", 3.0), ("greedy cloning", 6.9))
            ),
            runs("", "full labels", 8.5, metric="last weights"),
            of_game("15 %", "es-1000", None),
        ],
        [
            "Breakout, paper: full labels 7.00, behaviour cloning 3.00, greedy cloning 6.90; full labels with the last "
            "weights 8.50, published 17.75; better than behaviour cloning: holds (difference +4.00 +- 0.14); better "
            "than greedy cloning: cannot be told (difference +0.10 +- 0.14)"
        ],
    ),
    "learned": (
        [
            *(
                row("six worlds", "all", name, "normalised gap", ours=near(mean), setting="uds")
                for name, mean in (
                    ("learned", 0.3),
                    ("uniform", 1.0),
                    ("guided", 0.45),
                    ("learned-without-termination", 0.9),
                )
            ),
            row("Random tree", "10 %", "learned", mean=0.5, setting="adapted"),
            row("Random grid", "10 %", "learned", mean=0.7, setting="adapted"),
            row("Random grid", "10 %", "uniform", mean=0.65, setting="adapted"),
            row("Breakout", "15 %", "uniform", mean=5.0, setting="uds"),
        ],
        [
            "uds, gap left on the six worlds, uniform = 1: learned 0.300, guided 0.450, "
            "learned-without-termination 0.900, uniform 1.000",
            "uds: learned leaves 0.300 (0.200 to 0.400 over 5 training seeds), less than uniform beyond the intervals",
            "uds, mean return in Breakout: uniform 5.00",
            "adapted, mean return in random worlds: uniform 0.65, learned 0.60",
        ],
    ),
}


ELSEWHERE = {
    "minatar-scales": "minatar/test_minatar_scales.py",
    "control-heuristics": "control/test_control_studies.py",
    "control-groups": "control/test_control_studies.py",
    "zero-call": "selectors/test_zero_call.py",
    "prediction": "prediction/test_prediction.py",
}
"""Studies whose sentences are tested with their cells."""


def test_every_study_with_sentences_is_here():
    said = {name for name, study in STUDIES.items() if study.findings.__name__ != "no_findings"}
    assert said == {*CASES, *ELSEWHERE}
    for path in ELSEWHERE.values():
        assert ".findings(" in (Path(__file__).parents[1] / "studies" / path).read_text()


@pytest.mark.parametrize("name", CASES)
def test_sentences(name):
    rows, expected = CASES[name]
    assert STUDIES[name].findings(rows) == expected
