"""`python -m selectenv` runs the command line."""

import sys

if __name__ == "__main__":
    try:
        from experiments.cli.main import main
    except ModuleNotFoundError as error:
        sys.exit(
            f"error: the command line cannot be imported ({error}). It comes with the same distribution as selectenv: "
            "reinstall it with `pip install .` in a clone of the repository."
        )
    sys.exit(main())
