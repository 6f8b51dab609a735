"""Count the calls that break the rule: `python -m tests.odd_arguments.count [part of a name] [-v]`.

Each function is tried in a process of its own, so that one that crashes the interpreter is counted and not the end.
"""

import faulthandler
import os
import sys
import time

from tests.odd_arguments import agent_calls, data_calls, library_calls, session_calls, small_objects
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
