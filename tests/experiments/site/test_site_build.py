"""Sphinx builds a small part of the site with the configuration of docs/, and warnings are errors."""

import shutil
import subprocess
import sys

import pytest

from experiments.errors import SiteError
from experiments.site import site_build
from experiments.site.api_pages import api_pages
from experiments.site.links import broken_links
from experiments.site.staging import ROOT

BUILD = "import sys; from pathlib import Path; from experiments.site.site_build import run_sphinx; "
BUILD += "run_sphinx(*map(Path, sys.argv[1:]))"


@pytest.fixture
def source(tmp_path):
    """The configuration, a page with formulas, a page of the API and a list of them."""
    shutil.copytree(ROOT / "docs" / "_static", tmp_path / "source" / "_static")
    shutil.copy(ROOT / "docs" / "conf.py", tmp_path / "source")
    (tmp_path / "source" / "wrappers.md").write_text(dict(api_pages())["reference/api/wrappers.md"])
    bounds = (ROOT / "docs" / "concepts" / "bounds.md").read_text().partition("[Labelling")[0]
    (tmp_path / "source" / "bounds.md").write_text(bounds)
    (tmp_path / "source" / "index.md").write_text("# Home\n\n```{toctree}\nbounds\nwrappers\n```\n")
    return tmp_path / "source"


def sphinx(source):
    paths = [str(path) for path in (source, source.parent / "html", source.parent / "cache")]
    return subprocess.run([sys.executable, "-c", BUILD, *paths], cwd=ROOT, check=False, capture_output=True, text=True)


def test_a_part_of_the_site_builds_without_warnings(source):
    done = sphinx(source)
    assert done.returncode == 0, done.stderr
    site = source.parent / "html"
    assert list(broken_links(site)) == []
    assert (site / "bounds.html").read_text().count(
        '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">'
    ) == 2
    page = (site / "wrappers.html").read_text()
    assert 'id="selectenv.wrappers.OneShot"' in page
    assert "https://cdn" not in page  # nothing is loaded from elsewhere


def test_warnings_are_errors(source):
    (source / "bounds.md").write_text("# Bounds\n\nSee [this](no-such-page.md) and $\\nosuchcommand$.\n")
    done = sphinx(source)
    assert done.returncode != 0
    for warning in ("no-such-page", "formula cannot be converted", "warnings are errors"):
        assert warning in done.stderr


def test_broken_links_fail_the_build(tmp_path, monkeypatch):
    def write_page(source, site, cache):
        site.mkdir(parents=True)
        (site / "index.html").write_text('<a href="nowhere.html">')

    monkeypatch.setattr(site_build, "stage", lambda source: None)
    monkeypatch.setattr(site_build, "run_sphinx", write_page)
    with pytest.raises(SiteError, match=r"index\.html: nowhere\.html: no such file"):
        site_build.build(tmp_path)
