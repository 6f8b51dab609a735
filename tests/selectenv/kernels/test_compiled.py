"""The notice that kernels are being compiled: once per process, only if something is compiled, not in workers."""

import os
import subprocess
import sys

NOTICE = "selectenv: compiling numba kernels"
CODE = """
import numpy as np
from selectenv.kernels.tabular.distances import steps_from
from selectenv.kernels.tabular.subsets import fill_masks
print(steps_from(np.array([0, 1, 1], np.int32), np.array([1], np.int32), np.array([True, False])))
fill_masks(np.array([0]), np.array([0, 1]), np.zeros((2, 2), bool))
"""


def notices(cache, code=CODE, **variables):
    """Run a script with its own directory of compiled kernels; return how often it told that it compiles."""
    env = os.environ | {"NUMBA_CACHE_DIR": str(cache), **variables}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    return ran.stderr.count(NOTICE)


def test_compiling_is_announced_once_and_loading_from_the_cache_is_not(tmp_path):
    assert [notices(tmp_path) for _ in range(2)] == [1, 0]


def test_other_peoples_kernels_and_workers_are_silent(tmp_path):
    own = "import numba, selectenv\nnumba.njit(lambda x: x + 1)(1)"
    assert notices(tmp_path, own) == 0
    assert notices(tmp_path, LOKY_WORKER="1") == 0
