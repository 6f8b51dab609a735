"""Figures with the published numbers beside ours: which numbers are drawn, and that both panels have the same scale."""

import pytest

from experiments.analysis.game_verdicts import NOT_RUN, GameVerdict
from experiments.analysis.published_figures import Point, pairs, published_figures
from tests.experiments.analysis.synthetic_rows import row, summary, told

AGREES = told("agrees")


def published(mean, ours, **more):
    found = {"published": mean, "published_error": 0.5, "verdict": AGREES, **more}
    return row(ours=summary(ours, 0.25), **found)


def test_points_of_both_sides():
    rows = [published(1.0, 2.0, labels=3), published(3.0, 4.0, labels=6), published(5.0, 6.0, strategy="guided")]
    (pair,) = pairs(rows)
    assert (pair.world, pair.setting) == ("Graph", "")
    assert pair.published == {"uniform": [Point(3, 1.0, 0.5), Point(6, 3.0, 0.5)], "guided": [Point(3, 5.0, 0.5)]}
    assert pair.ours == {"uniform": [Point(3, 2.0, 0.25), Point(6, 4.0, 0.25)], "guided": [Point(3, 6.0, 0.25)]}


def test_worlds_and_settings_have_panels_of_their_own():
    rows = [published(1.0, 2.0, world=world, setting=setting) for world in ("Tree", "Graph") for setting in "ab"]
    assert [(pair.world, pair.setting) for pair in pairs(rows)] == [(w, s) for w in ("Tree", "Graph") for s in "ab"]


@pytest.mark.parametrize(("labels", "expected"), [(3, 3.0), ("15 %", 15.0), ("", 100.0)])
def test_labels_as_numbers_and_percentages(labels, expected):
    (pair,) = pairs([published(1.0, 2.0, labels=labels)])
    assert pair.published["uniform"][0].labels == expected


def test_the_panels_of_a_pair_have_the_same_scale():
    rows = [
        published(1.0, 20.0, labels=3),
        published(3.0, -4.0, labels=6),
        published(0.0, 9.0, labels=3, metric="test"),
    ]
    figures = published_figures(rows)
    assert list(figures) == [f"Published and ours at the same scale: {metric}" for metric in ("return", "test")]
    left, right = figures["Published and ours at the same scale: return"].axes
    assert [axes.get_title() for axes in (left, right)] == ["Graph: published", "Graph: ours"]
    assert (left.get_ylim(), left.get_xlim()) == (right.get_ylim(), right.get_xlim())
    assert left.get_ylim()[0] < -4.25
    assert left.get_ylim()[1] > 20.25
    assert [list(axes.lines[0].get_ydata()) for axes in (left, right)] == [[1.0, 3.0], [20.0, -4.0]]


def test_strategies_stand_beside_each_other_where_there_is_one_budget():
    (figure,) = published_figures([published(1.0, 2.0), published(3.0, 4.0, strategy="guided")]).values()
    for axes in figure.axes:
        assert [text.get_text() for text in axes.get_xticklabels()] == ["uniform", "guided"]
        assert [list(line.get_xdata()) for line in axes.lines] == [[0], [1]]


def test_numbers_that_were_not_run_are_drawn_on_the_published_side_only():
    missing = row(world="Breakout", labels="15 %", published=3.0, verdict=GameVerdict(NOT_RUN))
    (figure,) = published_figures([missing, published(5.0, 4.0, world="Breakout", labels="30 %")]).values()
    assert [list(axes.lines[0].get_xdata()) for axes in figure.axes] == [[15.0, 30.0], [30.0]]


def test_panels_without_any_result_are_left_out():
    missing = row(world="Breakout", labels="15 %", published=3.0, verdict=GameVerdict(NOT_RUN))
    assert published_figures([missing]) == {}
    (figure,) = published_figures([missing, published(5.0, 4.0, world="Asterix", labels="30 %")]).values()
    assert [axes.get_title() for axes in figure.axes] == ["Asterix: published", "Asterix: ours"]


def test_rows_without_a_verdict_are_not_drawn():
    assert published_figures([row(mean=1.0), row(mean=1.0, published=2.0)]) == {}
