"""The demo: the table is sorted, the sentences agree with its rows, the figures stay readable."""

import re
import sys

import numpy as np
import pytest

import agents
from experiments import demo
from experiments.analysis.best_known import best_return
from experiments.cli import main as cli


def read_table(printed):
    """Return [labels, strategy, return, gap] of every line of the printed table, in order."""
    rows = []
    for line in printed.partition("----\n")[2].partition("\n\n")[0].splitlines():
        labels, strategy, *numbers = re.split(r"  +", line.strip())
        if numbers != ["not enumerated"]:
            mean = float(numbers[0])
            rows.append((int(labels), strategy, mean, float(numbers[2]) if len(numbers) > 1 else 0.0))
    return rows


def check_sentences(text, rows):
    """Recompute both sentences from the rows of the table alone."""
    text = " ".join(text.split())
    few = min(row[0] for row in rows)
    played = {strategy: mean for labels, strategy, mean, _ in rows if labels == few and strategy != "(best known)"}
    (best,) = (mean for labels, strategy, mean, _ in rows if labels == few and strategy == "(best known)")
    said = re.search(
        r"With (\d+) labels, (\S+) earns the most, (\S+) of the best known (\S+), and (\S+) the least, (\S+)\.", text
    )
    assert int(said[1]) == few
    assert (played[said[2]], float(said[3])) == (max(played.values()),) * 2
    assert float(said[4]) == best
    assert (played[said[5]], float(said[6])) == (min(played.values()),) * 2
    gaps = {}
    for _, strategy, _, gap in rows:
        if strategy != "(best known)" and agents.AGENTS[strategy][0].taxonomy.evaluator == "never":
            gaps.setdefault(strategy, []).append(gap)
    said = re.search(
        r"Of the strategies that never ask the evaluator, (\S+) comes closest .*: its gap is (.*)\.$", text
    )
    assert np.mean(gaps[said[1]]) == min(map(np.mean, gaps.values()))
    labels = sorted({row[0] for row in rows})
    assert re.findall(r"(\S+) with (\d+) labels", said[2]) == [
        (f"{gap:.3f}", str(n)) for gap, n in zip(gaps[said[1]], labels, strict=True)
    ]


def sentences_of(printed):
    return printed[printed.index("\nWith ") : printed.index("\nFigures:")]


def test_the_quick_demo(tmp_path, capsys):
    assert cli.main(["demo", "--quick", "--out", str(tmp_path / "deep")]) == 0
    printed, said = capsys.readouterr()
    rows = read_table(printed)
    assert [row[:2] for row in rows if row[1] == "(best known)"] == [(3, "(best known)"), (9, "(best known)")]
    assert rows == sorted(rows, key=lambda row: (row[0], -row[2], row[1] != "(best known)"))
    assert {strategy for _, strategy, _, _ in rows} == {"(best known)", *demo.STRATEGIES}
    for labels, _, mean, gap in rows:
        assert mean + gap == pytest.approx(best_return("Tree", "uds", labels), abs=2e-3)
    check_sentences(sentences_of(printed), rows)
    for name in ("performance.png", "selections.png"):
        assert (tmp_path / "deep" / name).read_bytes()[:4] == b"\x89PNG"
        assert str(tmp_path / "deep" / name) in printed
    suggested = re.findall(r"^  \S*selectenv (.*?)  +", printed.partition("Next:")[2], flags=re.MULTILINE)
    for line in suggested[:-1]:
        cli.parser().parse_args(line.split())
    assert suggested[-1] == "label --help"
    assert "docs/own-data.md" in printed.splitlines()[-1]
    assert "collecting" in said
    assert all(f"playing {name}\n" in said for name in demo.STRATEGIES)


def test_every_strategy_that_is_not_slow(tmp_path, capsys):
    assert cli.main(["demo", "--all", "--seeds", "1", "--budgets", "4", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    for name, (kind, _) in agents.AGENTS.items():
        assert (f" {name} " in printed) != kind.slow
    assert "proved optimal" in printed  # a budget that no published table has is searched
    rows = read_table(printed)
    assert rows[0][1:3] == ("(best known)", max(row[2] for row in rows))
    check_sentences(sentences_of(printed), rows)


@pytest.mark.parametrize(
    "wrong", [["--seeds", "0"], ["--budgets", "0"], ["--budgets", "32"], ["--only", "guidd"]], ids=" ".join
)
def test_wrong_options(wrong, tmp_path, capsys):
    assert cli.main(["demo", *wrong, "--out", str(tmp_path)]) == 1
    assert "error: " in capsys.readouterr().err


def score(strategy, labels, mean, best):
    return demo.Score(
        strategy, labels, mean, None, best.mean - mean if mean is not None else np.inf, 0, 0.0, np.zeros(3)
    )


@pytest.mark.parametrize("seed", range(20))
def test_sentences_agree_with_any_rows(seed):
    rng = np.random.default_rng(seed)
    best = {b: demo.Best(20.0 + b, True, np.zeros(3)) for b in (2, 5, 8)[: 1 + seed % 3]}
    names = rng.choice(list(agents.AGENTS)[:20], 6, replace=False)
    means = rng.integers(5, 18, (6, 3)) + rng.random((6, 3)).round(3)
    scores = [score(n, b, float(means[i, j]), best[b]) for i, n in enumerate(names) for j, b in enumerate(best)]
    text = " ".join(demo.findings(scores, best))
    rows = read_table(demo.score_table(sorted(scores, key=lambda s: (s.labels, s.gap)), best))
    if "All of these strategies ask" in text:
        assert all(demo.asks_evaluator(name) for name in names)
    else:
        check_sentences(text, rows)


def test_sentences_of_what_was_not_enumerated():
    best = {3: demo.Best(20.0, True, np.zeros(3))}
    missing = score("brute-force", 3, None, best[3])
    assert "brute-force" in demo.score_table([missing], best)
    assert demo.findings([missing], best) == ["None of these strategies enumerates all sets of 3 labels."]
    both = demo.findings([missing, score("exact", 3, 19.0, best[3])], best)
    assert both[0].startswith("With 3 labels, exact earns the most, 19.000")
    assert both[1] == "All of these strategies ask the evaluator."


def test_figures_stay_readable(tmp_path, monkeypatch):
    drawn = {}
    monkeypatch.setattr(demo, "performance_figure", lambda curves, *_: drawn.update(curves=curves))
    monkeypatch.setattr(demo, "selections_figure", lambda _, panels, *__: drawn.update(panels=panels))
    best = {b: demo.Best(20.0, True, np.zeros(3)) for b in (3, 9)}
    scores = [score(name, b, 10.0, best[b]) for name in agents.AGENTS for b in best]
    demo._draw(None, scores, best, tmp_path)
    assert set(drawn["curves"]) == {demo.BEST, *demo.STRATEGIES}
    assert len(drawn["curves"]) == 8
    assert len(drawn["panels"]) == 9


def test_without_matplotlib_there_is_the_table(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    assert cli.main(["demo", "--only", "terminal", "--budgets", "3", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "(best known)" in printed
    assert "No figures were drawn: figures need Matplotlib: pip install 'selectenv[plot]'" in printed
    assert list(tmp_path.iterdir()) == []
