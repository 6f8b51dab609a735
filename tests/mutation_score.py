"""Prints the share of mutants that the tests killed, and fails below 90 %; run by `make mutants` after mutmut."""

import subprocess
import sys

LEAST = 0.90
KILLED = ("killed", "timeout")
NOT_COUNTED = ("skipped",)


def main() -> int:
    """Read the results of mutmut, print them, and return the exit code."""
    command = [sys.executable, "-m", "mutmut", "results", "--all", "true"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = dict(line.strip().rsplit(": ", 1) for line in printed.splitlines() if "__mutmut_" in line)
    counted = {name: status for name, status in found.items() if status not in NOT_COUNTED}
    if not counted:
        print("there are no results of mutmut: run `make mutants`", file=sys.stderr)
        return 1
    waiting = sum(status == "not checked" for status in counted.values())
    if waiting:
        print(f"{waiting} of {len(counted)} mutants are not tested yet: run `make mutants` to resume", file=sys.stderr)
        return 1
    survivors = sorted(name for name, status in counted.items() if status not in KILLED)
    for name in survivors:
        print(f"{counted[name]}: {name}")
    killed = len(counted) - len(survivors)
    share = killed / len(counted)
    print(f"{killed} of {len(counted)} mutants killed: {share:.1%} (at least {LEAST:.0%} are required)")
    return 0 if share >= LEAST else 1


if __name__ == "__main__":
    sys.exit(main())
