"""The checker of links finds files and anchors that do not exist, and addresses of a wrong form."""

import pytest

from experiments.site.links import broken_links


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("b.html", ""),
        ("b.html#here", ""),
        ("#top", ""),
        ("folder/", ""),
        ("data:image/png;base64,AAAA", ""),
        ("https://arxiv.org/abs/2510.00144", ""),
        ("c.html", "no such file"),
        ("../outside.html", "no such file"),
        ("b.html#there", "no such anchor"),
        ("#bottom", "no such anchor"),
        ("folder", ""),
        ("empty/", "no such file"),
        ("http://arxiv.org", "must start with https"),
        ("https://arxiv", "must start with https"),
        ("file:///etc/hosts", "must start with https"),
    ],
)
def test_links(link, problem, tmp_path):
    site = tmp_path / "site"
    for name in ("folder", "empty"):
        (site / name).mkdir(parents=True)
    (site / "folder" / "index.html").write_text("<p>")
    (tmp_path / "outside.html").write_text("<p>")
    (site / "a.html").write_text(f'<h1 id="top">A</h1><a href="{link}">x</a>')
    (site / "b.html").write_text('<h1 id="here">B</h1><img src="a.html">')
    found = list(broken_links(site))
    assert len(found) == bool(problem)
    assert not problem or (found[0].startswith(f"a.html: {link}: ") and problem in found[0])
