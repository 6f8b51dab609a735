"""Breakout's data at five shares of random actions, with networks: the right figure of the right published table."""

from experiments.engine.cell import Result
from experiments.protocol.published import behaviour
from experiments.studies.breakout.behaviour_mixtures import RANDOM_SHARES
from experiments.studies.breakout.breakout_mixtures import STUDY
from experiments.studies.minatar.network_cells import CLOSED, network_cell


def reproduced(rule, learner, without):
    """Results that repeat the published table of a rule, with two seeds."""
    results = []
    for seed in (0, 1):
        for share in RANDOM_SHARES:
            known = {row.feedback: row.score.mean for row in behaviour(rule) if row.expert_ratio == share}
            cells = {
                0.0: network_cell("Breakout", without, seed, "fast", random_share=share),
                1.0: network_cell("Breakout", "full labels", seed, "fast", learner=learner, random_share=share),
            }
            for feedback, cell in cells.items():
                value = known.pop(feedback)
                results.append(Result(cell, [{"labels": "", "return": value}, {"updates": 1, "curve": 9.0}], 0.1))
            guided = network_cell("Breakout", "guided", seed, "fast", learner=learner, random_share=share, **CLOSED)
            records = [{"labels": f"{100 * feedback:.0f} %", "return": value} for feedback, value in known.items()]
            results.append(Result(guided, records, 0.1))
    return results


def test_results_stand_beside_the_figure_of_the_same_rule_share_and_budget():
    results = reproduced("uds", "iql", "no labels") + reproduced("adapted", "iql-adapted", "behaviour cloning")
    rows = [row for row in STUDY.rows(results) if row.metric == "return"]
    assert len(rows) == len({(row.setting, row.labels) for row in rows}) == 80
    assert all(row.ours.mean == row.published and row.verdict.counted for row in rows)
    assert {row.setting for row in rows} == {
        f"{rule}, random share {share:g}" for rule in ("uds", "adapted") for share in RANDOM_SHARES
    }
    assert all(row.strategy == "guided" and row.verdict.control.others == 4 for row in rows)
    assert STUDY.figures(results)


def test_both_rules_have_their_references():
    cells = STUDY.cells(2, "exact")
    found = {(cell.strategy, cell.settings["problem"]["learner"]) for cell in cells}
    assert found == {
        ("no labels", "iql"),
        ("behaviour cloning", "bc"),
        *((strategy, learner) for strategy in ("full labels", "guided") for learner in ("iql", "iql-adapted")),
    }
    assert len(cells) == 2 * 2 * 3 * 5
