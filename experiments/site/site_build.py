"""Builds the documentation site, with warnings as errors, and checks its links."""

from pathlib import Path

from experiments.errors import SiteError
from experiments.site.links import broken_links
from experiments.site.staging import stage
from selectenv.errors import MissingExtraError


def run_sphinx(source: Path, site: Path, cache: Path, builder: str = "html") -> None:
    """Run Sphinx with warnings as errors.

    Raises:
        MissingExtraError: Sphinx is not installed.
        SiteError: there were warnings.
    """
    try:
        from sphinx.cmd.build import build_main
    except ModuleNotFoundError:
        raise MissingExtraError("the documentation site needs Sphinx: pip install 'selectenv[docs]'") from None
    options = ["--quiet", "--fail-on-warning", "--keep-going", "-b", builder, "-d", str(cache)]
    if build_main([*options, str(source), str(site)]) != 0:
        raise SiteError("Sphinx reported the warnings above; warnings are errors")


def build(out: Path) -> Path:
    """Build the site below ``out`` and return its first page.

    Raises:
        SiteError: a page is not listed, Sphinx warned, or links are broken.
    """
    site = out / "html"
    stage(out / "source")
    run_sphinx(out / "source", site, out / "cache")
    if problems := list(broken_links(site)):
        raise SiteError("\n".join(["broken links:", *problems]))
    return site / "index.html"
