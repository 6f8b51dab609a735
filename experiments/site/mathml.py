"""Sphinx extension: formulas as MathML, which browsers draw without scripts and without a network."""

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


def converted(node: nodes.Element, *, block: bool) -> str:
    """Return a formula as MathML; a formula that cannot be converted is a warning, and thus an error of the build."""
    try:
        return str(tex2mathml(node.astext(), as_block=block))
    except MathError as error:
        LOGGER.warning("formula cannot be converted: %s", error, location=node)
        return ""


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write a formula within a sentence."""
    translator.body.append(converted(node, block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula of its own line."""
    translator.body.append(f'<div class="formula">{converted(node, block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer under the name "mathml"."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
