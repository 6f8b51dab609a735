"""`python -m experiments.site` builds the documentation site in build/docs; `make docs` runs it."""

import os
import sys
from pathlib import Path

from experiments.site.site_build import build
from selectenv.errors import SelectEnvError


def main() -> int:
    """Build the site; return the exit code."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pictures of control worlds are drawn without a screen
    try:
        print(f"the site: {build(Path('build', 'docs'))}")
    except SelectEnvError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
