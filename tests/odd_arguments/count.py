"""Count the calls that break the rule: `python -m tests.odd_arguments.count [part of a name] [-v]`.

Each function is tried in a process of its own, so that one that crashes the interpreter is counted and not the end.
"""

import faulthandler
import os
import sys
import time

from tests.odd_arguments import agent_calls, data_calls, library_calls, session_calls, small_objects, vector_calls
from tests.odd_arguments.judge import Call, defect
from tests.odd_arguments.odd_values import ODD


def count(call: Call) -> int:
    """Print and return how many calls with one odd argument break the rule."""
    began, calls, broken = time.time(), 0, 0
    for argument in call.arguments:
        for name, make in ODD.items():
            if "-vv" in sys.argv:
                print(f"    {call.name}({argument}={name})", flush=True)
            found = defect(call, {argument: make})
            calls, broken = calls + 1, broken + (found is not None)
            if found is not None and "-v" in sys.argv:
                print(f"    {call.name}({argument}={name}): {found}", flush=True)
    print(f"{call.name:<32} {broken:>5} of {calls:>5}   {time.time() - began:6.1f} s", flush=True)
    return broken


def main() -> None:
    """Count for every function whose name contains the first argument."""
    faulthandler.enable(sys.__stderr__)
    os.chdir(small_objects.folder())
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    broken = calls = 0
    every = library_calls.CALLS + agent_calls.CALLS + data_calls.CALLS + session_calls.CALLS + vector_calls.CALLS
    for call in (call for call in every if wanted in call.name):
        read, write = os.pipe()
        if not (child := os.fork()):
            os.write(write, str(count(call)).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as answer:
            found = answer.read()
        os.waitpid(child, 0)
        mine = len(call.arguments) * len(ODD)
        if not found:
            print(f"{call.name:<32} the interpreter crashed", flush=True)
        calls, broken = calls + mine, broken + int(found or mine)
    print(f"{broken} of {calls} calls break the rule")


if __name__ == "__main__":
    main()
