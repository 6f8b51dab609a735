"""Matplotlib figures as small SVG text inside an HTML page."""

import io
import re
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any

from markupsafe import Markup

FONT = re.compile(r"font-family: [^;\"]*;?")
"""Matplotlib lists a dozen fonts in every text; the font of the page is better."""
PATH = re.compile(r'<path d="([^"]*)"([^>]*)/>')
STEP = re.compile(r"([MLQCz])([^MLQCz]*)")
FEWEST = 3
"""A shape that occurs at least so often is defined once."""


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
    svg = _with_shapes(re.sub(r"\s+", " ", svg).replace("> <", "><"))
    svg = re.sub(r"(\d\.\d)\d+", r"\1", svg)  # a tenth of a point is enough
    svg = _with_prefix(_with_classes(_without_waste(svg)), f"f{next(numbers)}-")
    label = Markup('<svg role="img" aria-label="{}" ').format(title)
    return Markup(svg.replace("<svg ", str(label), 1))


def _with_shapes(svg: str) -> str:
    """Return the SVG with closed paths that differ only in their place, such as circles, defined once and then used."""
    shapes = Counter(shape for found in PATH.finditer(svg) if (shape := _shape(found.group(1))))
    defined = {shape: f"s{i}" for i, shape in enumerate(shapes) if shapes[shape] >= FEWEST}

    def used(found: re.Match[str]) -> str:
        name = defined.get(_shape(found.group(1)))
        if name is None or "id=" in found.group(2):
            return found.group(0)
        x, y = found.group(1).split()[1:3]
        style = re.sub(r' clip-path="[^"]*"', "", found.group(2))  # a clip would move with the shape
        return f'<use xlink:href="#{name}" x="{x}" y="{y}"{style}/>'

    definitions = "".join(f'<path id="{name}" d="{shape}"/>' for shape, name in defined.items())
    return re.sub(r"(<svg [^>]*>)", rf"\1<defs>{definitions}</defs>", PATH.sub(used, svg), count=1)


def _shape(path: str) -> str:
    """Return a closed path relative to its first point, and nothing for an open one."""
    if not path.strip().endswith("z"):
        return ""
    steps = [(command, [float(number) for number in text.split()]) for command, text in STEP.findall(path)]
    first = steps[0][1]
    return " ".join(
        command + " ".join(f"{number - first[i % 2]:.1f}".replace("-0.0", "0.0") for i, number in enumerate(numbers))
        for command, numbers in steps
    )


def _without_waste(svg: str) -> str:
    """Return the SVG without comments, lists of fonts, rotations and decimals of 0, unused ids, and needless groups."""
    svg = re.sub(r"<!--.*?-->", "", FONT.sub("", svg))
    svg = re.sub(r"(?<=\d)\.0(?!\d)", "", svg)
    svg = re.sub(r' transform="rotate\(-?0 [^"]*"', "", svg)
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg))
    svg = re.sub(r' id="([^"]+)"', lambda found: found.group(0) if found.group(1) in used else "", svg)
    short = {name: f"i{number}" for number, name in enumerate(sorted(used))}
    svg = re.sub(r'(?<= id=")[^"]+|(?<=url\(#)[^)]+|(?<=href="#)[^"]+', lambda found: short[found.group(0)], svg)
    svg = re.sub(r' d="[^"]*"', lambda found: re.sub(r" ?([MLQCz]) ?", r"\1", found.group(0)).replace(' "', '"'), svg)
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
