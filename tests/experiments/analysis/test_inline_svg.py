"""Figures as SVG text: small, with ids and classes of their own, and with everything that was drawn."""

import re
from itertools import count, pairwise
from xml.etree import ElementTree

from experiments.analysis.figures import new_figure
from experiments.analysis.inline_svg import inline_svg


def drawn():
    figure = new_figure(6, 3)
    for i in (1, 2):
        axes = figure.add_subplot(1, 2, i)
        axes.errorbar([0, 1, 2], [1, 2, 0], [0.1, 0.2, 0.1], label="a curve")
        axes.set_title(f"Panel {i} & more")
        axes.legend()
    return figure


def elements(svg):
    found = ElementTree.fromstring(str(svg).replace("<svg ", '<svg xmlns:x="y" ', 1))
    return [one.tag.rpartition("}")[2] for one in found.iter()], "".join(found.itertext())


def test_the_text_is_well_formed_and_says_what_was_drawn():
    svg = inline_svg("A <title>", drawn(), count(1))
    assert svg.startswith('<svg role="img" aria-label="A &lt;title&gt;" ')
    tags, text = elements(svg)
    for words in ("Panel 1 & more", "Panel 2 & more", "a curve"):
        assert words in text
    assert tags.count("path") > 20


def test_nothing_that_is_drawn_gets_lost():
    import io

    whole = io.StringIO()
    drawn().savefig(whole, format="svg")
    (before, _), (after, _) = (
        elements(whole.getvalue()[whole.getvalue().index("<svg") :]),
        elements(inline_svg("t", drawn(), count(1))),
    )
    assert after.count("use") == before.count("use") - _glyphs(whole.getvalue())
    assert len(inline_svg("t", drawn(), count(1))) < 0.5 * len(whole.getvalue())


def test_shapes_that_differ_only_in_their_place_are_defined_once():
    from matplotlib.patches import Circle

    figure = new_figure(3, 3)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, 10), ylim=(0, 10))
    axes.axis("off")
    for x in range(10):
        axes.add_patch(Circle((x, 5), 0.25, color="red"))
    axes.add_patch(Circle((5, 5), 2.0))
    svg = str(inline_svg("t", figure, count(1)))
    used = re.findall(r'<use xlink:href="#([\w-]+)" x="([\d.]+)" y="([\d.]+)"', svg)
    assert len({name for name, _, _ in used}) == 1
    places = [(float(x), float(y)) for _, x, y in used]
    assert [round(right[0] - left[0], 1) for left, right in pairwise(places)] == [21.6] * 9  # 216 points, ten units
    assert len({y for _, y in places}) == 1
    assert len(re.findall(r"<path[^>]*C", svg)) == 2  # the small circle, once, and the large one


def _glyphs(svg):
    """Return how many letters Matplotlib draws as paths by default; here, text stays text."""
    return len(re.findall(r'xlink:href="#DejaVu', svg))


def test_ids_and_classes_are_unique_on_a_page_and_all_references_resolve():
    numbers = count(1)
    first, second = (inline_svg("t", drawn(), numbers) for _ in range(2))
    names = [set(re.findall(r'\b(?:id|class)="([^"]+)"', svg)) for svg in (first, second)]
    assert names[0]
    assert not names[0] & names[1]
    for svg in (first, second):
        ids = re.findall(r'\bid="([^"]+)"', svg)
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg)) == set(ids)
        assert set(re.findall(r'\bclass="([^"]+)"', svg)) == set(re.findall(r"[>}]\.([\w-]+)\{", svg))
