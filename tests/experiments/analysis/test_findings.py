"""The sentences of every study say what its rows say."""

import pytest

from experiments.studies import find_studies
from experiments.studies.breakout.breakout_coverage import EXPERT_SHARES
from tests.experiments.analysis.synthetic_rows import row, summary

STUDIES = find_studies()


def of_game(labels, strategy, mean, metric="return", setting="laptop", world="Breakout"):
    return row(world, labels, strategy, metric, mean, setting=setting)


def near(mean):
    return summary(mean, low=mean - 0.1, high=mean + 0.1, runs=5)


CASES = {
    "breakout-heuristics": (
        [
            of_game("15 %", "uniform", 1.0),
            of_game("30 %", "uniform", 2.0),
            of_game("15 %", "visitation", 3.0),
            of_game("15 %", "guided", 4.0),
            of_game("15 %", "terminal-guided", 5.25),
            of_game("15 %", "terminal", 99.0),
            of_game("15 %", "uniform", 7.0, setting="paper"),
        ],
        [
            "laptop, mean over budgets: uniform 1.50, visitation 3.00, guided 4.00, terminal-guided 5.25",
            "paper, mean over budgets: uniform 7.00",
        ],
    ),
    "breakout-rewards": (
        [
            of_game("15 %", "visitation", 60936.98, "reward inside, of 69,700"),
            of_game("15 %", "uniform", 10039.34, "reward inside, of 69,700"),
            of_game("44 %", "uniform", 99999.0, "reward inside, of 69,700"),
        ],
        ["laptop, 15 % labelled: visitation finds 60,937 of reward, uniform 10,039"],
    ),
    "breakout-trained": (
        [
            of_game("15 %", "es-1000", 9.0),
            of_game("15 %", "es-1000", 8.0, "fresh"),
            of_game("15 %", "guided", 7.0, "fresh"),
            of_game("15 %", "guided", 6.0),
            of_game("30 %", "guided", 5.0, "fresh"),
            of_game("", "full labels", 11.0, "fresh"),
        ],
        [
            "laptop, fresh episodes, 15 % labelled: es-1000 8.00 (on its own episodes 9.00), guided 7.00, "
            "all states labelled 11.00"
        ],
    ),
    "breakout-coverage": (
        [
            of_game("", f"expert {share:g}", mean + i, metric)
            for i, share in enumerate(EXPERT_SHARES)
            for metric, mean in (("unique states", 1000.0), ("return of full labels", 5.0), ("other", 99.0))
        ],
        [
            "laptop, all states labelled: expert 0: 1,000 states, return 5.0; expert 0.3: 1,001 states, return 6.0; "
            "expert 0.5: 1,002 states, return 7.0; expert 0.7: 1,003 states, return 8.0; "
            "expert 1: 1,004 states, return 9.0"
        ],
    ),
    "breakout-iql": (
        [
            of_game(labels, strategy, mean, metric)
            for labels in ("15 %",)
            for strategy, table, network in (("a", 1.0, 2.0), ("b", 2.0, 6.0), ("c", 3.0, 4.0), ("full labels", 9, 0))
            for metric, mean in (("exact", table), ("return", network))
        ],
        ["laptop: rank correlation of table and network over strategies: all budgets 0.50 (3), 15 % 0.50 (3)"],
    ),
    "minatar-cost": (
        [
            row("Seaquest", "60 %", "visitation", mean=3.14, setting="laptop, 0 calls"),
            row("Seaquest", "60 %", "best-of", mean=4.0, setting="laptop, 4 calls"),
            row("Seaquest", "60 %", "guided"),
        ],
        ["Seaquest, 60 % labelled: visitation 3.1 (laptop, 0 calls), best-of 4.0 (laptop, 4 calls)"],
    ),
    "minatar-heuristics": (
        [
            of_game("15 %", "uniform", 1.0),
            of_game("30 %", "uniform", 2.0),
            of_game("45 %", "uniform", 99.0),
            of_game("15 %", "guided", 3.0),
            of_game("30 %", "guided", 5.0),
            of_game("", "full labels", 7.0),
        ],
        ["Breakout, laptop, mean over 15 %, 30 %: uniform 1.50, guided 4.00; all states labelled 7.00"],
    ),
    "minatar-trained": (
        [
            of_game("", name, mean)
            for name, mean in (("full labels", 7.0), ("behaviour cloning", 3.0), ("greedy cloning", 4.0))
        ],
        [
            "Breakout, laptop: full labels 7.00, behaviour cloning 3.00, greedy cloning 4.00; "
            "published with every reward labelled: 17.75"
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


def test_every_study_with_sentences_is_here():
    said = {name for name, study in STUDIES.items() if study.findings.__name__ != "no_findings"}
    assert said == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_sentences(name):
    rows, expected = CASES[name]
    assert STUDIES[name].findings(rows) == expected
