"""`python -m experiments` runs the command line."""

import sys

from experiments.cli.main import main

sys.exit(main())
