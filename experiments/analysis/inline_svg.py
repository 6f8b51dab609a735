"""Matplotlib figures as small SVG text inside an HTML page."""

import io
import re
from collections.abc import Iterator
from itertools import count
from typing import Any

from markupsafe import Markup

FONT = re.compile(r"font-family: [^;\"]*;?")
"""Matplotlib lists a dozen fonts in every text; the font of the page is better."""


def inline_svg(title: str, figure: Any, numbers: Iterator[int]) -> Markup:
    """Return a Matplotlib figure as SVG whose ids and classes are unique on the page.

    Args:
        title: what screen readers read.
        figure: the Matplotlib figure.
        numbers: the numbers of the figures of the page.
    """
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):  # text stays text: smaller, and screen readers can read it
        figure.savefig(buffer, format="svg")
    svg = buffer.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r"\s+", " ", re.sub(r"(\d\.\d)\d+", r"\1", svg)).replace("> <", "><")  # a tenth of a point is enough
    svg = _with_prefix(_with_classes(_without_waste(svg)), f"f{next(numbers)}-")
    label = Markup('<svg role="img" aria-label="{}" ').format(title)
    return Markup(svg.replace("<svg ", str(label), 1))


def _without_waste(svg: str) -> str:
    """Return the SVG without comments, rotations by 0, lists of fonts, unused ids and groups around single elements."""
    svg = re.sub(r"<!--.*?-->", "", FONT.sub("", svg))
    svg = re.sub(r' transform="rotate\(-?0 [^"]*"', "", svg)
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg))
    svg = re.sub(r' id="([^"]+)"', lambda found: found.group(0) if found.group(1) in used else "", svg)
    before = ""
    while before != svg:
        before, svg = svg, re.sub(r"<g>(<[^<>]*/>|<text[^<>]*>[^<>]*</text>|)</g>", r"\1", svg)
    return svg


def _with_classes(svg: str) -> str:
    """Return the SVG with one class per style that is used several times."""
    styles = re.findall(r' style="([^"]*)"', svg)
    names = (f"c{number}" for number in count())
    classes = {style: next(names) for style in dict.fromkeys(styles) if styles.count(style) > 1}

    def short(found: re.Match[str]) -> str:
        return f' class="{classes[found.group(1)]}"' if found.group(1) in classes else found.group(0)

    svg = re.sub(r' style="([^"]*)"', short, svg)
    rules = "".join(f".{name}{{{style}}}" for style, name in classes.items())
    return re.sub(r"(<svg [^>]*>)", rf"\1<style>{rules}</style>", svg, count=1)


def _with_prefix(svg: str, prefix: str) -> str:
    """Return the SVG with a prefix in front of all ids and classes."""
    for before in (r'\bid="', r"url\(#", r'href="#', r'\bclass="', r"(?<=[>}])\.(?=c\d+\{)"):
        svg = re.sub(rf"({before})", rf"\1{prefix}", svg)
    return svg
