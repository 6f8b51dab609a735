"""CPU time of the first use on a machine without compiled kernels and without collected data."""

import os
import subprocess
import sys
import tempfile

from experiments.cli.tables import table

TARGET_SECONDS = 10
"""CPU seconds that a first use may cost."""
FIRST_USE = """
import resource
import gymnasium as gym
import selectenv
env = gym.make("RewardSelection-Tree-v0", budget=3)
env.reset(seed=0)
for action in range(3):
    env.step(action)
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(sum(usage.ru_utime + usage.ru_stime for usage in used))
"""


def cold_start_seconds() -> float:
    """Return the CPU seconds of one episode of Tree in a fresh process with empty caches, imports included."""
    with tempfile.TemporaryDirectory() as kernels, tempfile.TemporaryDirectory() as data:
        env = os.environ | {"NUMBA_CACHE_DIR": kernels, "SELECTENV_CACHE": data}
        ran = subprocess.run(
            [sys.executable, "-c", FIRST_USE],
            env=env,
            check=True,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    return float(ran.stdout)


def bench_cold_start() -> None:
    """Print the CPU seconds of a first use beside the target."""
    rows = [("gym.make, reset and three steps of Tree", f"{cold_start_seconds():.1f}", TARGET_SECONDS)]
    print("\nFirst use with empty caches\n")
    print(table(("first use", "CPU seconds", "limit"), rows))
