"""Checks what a release would publish: ``python -m tests.release_check dist``, after ``python -m build``."""

import re
import sys
import tarfile
import zipfile
from pathlib import Path

import selectenv

ROOT = Path(__file__).parent.parent
LARGEST_WHEEL = 10_000_000
"""Bytes."""
NEEDED = (
    "README.md",
    "LICENSE",
    "pyproject.toml",
    "selectenv/__init__.py",
    "agents/__init__.py",
    "experiments/__init__.py",
)
"""Files that a source distribution must have."""


def problems(folder: Path) -> list[str]:
    """Return what is wrong with the distributions in a folder, one sentence each."""
    wheels, sources = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sources) != 1:
        return [f"{folder} holds {len(wheels)} wheels and {len(sources)} source distributions instead of one of each"]
    (wheel,), (source,) = wheels, sources
    found = [
        f"{path.name} is not of version {selectenv.__version__}"
        for path in (wheel, source)
        if not path.name.startswith(f"selectenv-{selectenv.__version__}")
    ]
    if wheel.stat().st_size >= LARGEST_WHEEL:
        found.append(f"{wheel.name} has {wheel.stat().st_size:,} bytes; it must have fewer than {LARGEST_WHEEL:,}")
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    wrong = tops - {"selectenv", "agents", "experiments", f"selectenv-{selectenv.__version__}.dist-info"}
    if wrong:
        found.append(f"{wheel.name} installs more than it should: {', '.join(sorted(wrong))}")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    found += [f"{source.name} lacks {name}" for name in NEEDED if name not in names]
    return found + changelog_problems((ROOT / "CHANGELOG.md").read_text("utf-8"))


def changelog_problems(text: str) -> list[str]:
    """Return what is wrong with the headings of a changelog: versions descend, and none is newer than the package."""
    headings = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    versions = [
        tuple(map(int, found.groups())) for line in headings if (found := re.match(r"(\d+)\.(\d+)\.(\d+)", line))
    ]
    found = []
    if not headings or headings[0] != "Unreleased":
        found.append("CHANGELOG.md must begin with the section 'Unreleased'")
    if versions != sorted(versions, reverse=True):
        found.append("the versions of CHANGELOG.md must descend")
    own = tuple(map(int, selectenv.__version__.split(".")[:3]))
    if versions and max(versions) > own:
        found.append(f"CHANGELOG.md has a version newer than that of the package, {selectenv.__version__}")
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    if wrong:
        sys.exit(1)
    print(f"{', '.join(sorted(path.name for path in Path(sys.argv[1]).iterdir()))}: ready to be published")
