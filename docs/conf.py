"""Configuration of the documentation site. `make docs` runs Sphinx on a copy of this directory with generated pages."""

import re

import selectenv

project = "selectenv"
author = project_copyright = "The selectenv authors"
version = release = selectenv.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "experiments.site.mathml"]
html_theme = "furo"
html_title = f"selectenv {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = False
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]  # as repository browsers write blocks of formulas
myst_heading_anchors = 4
default_role = "py:obj"  # names in docstrings become links where the reference has them
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring, napoleon_numpy_docstring = True, False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
nitpicky = False  # types of NumPy and Gymnasium cannot be looked up without a network

ARRAY = re.compile(
    r"(~?(?:numpy\.)?ndarray)\[~?tuple\[~?(?:typing\.)?Any, \.\.\.\], "
    r"~?(?:numpy\.)?dtype\[((?:[^\[\]]|\[[^\]]*\])*)\]\]"
)


def short_arrays(app, what, name, thing, options, signature, returned):
    """Write types of arrays as "ndarray[float64]"."""
    return tuple(ARRAY.sub(r"\1[\2]", text) if text else text for text in (signature, returned))


def setup(app):
    """Connect what Sphinx has no setting for."""
    app.connect("autodoc-process-signature", short_arrays)
