"""Compiled kernels: when users are told that something is compiled, and when the cache on disk is out of date."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import selectenv

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


PART = """
from selectenv.kernels.compiled import exact_part

@exact_part
def shifted(x):
    return x + {}
"""
USER = """
from selectenv.kernels.compiled import kernel
from selectenv.kernels.part import shifted

@kernel
def doubled(x):
    return 2.0 * shifted(x)
"""


def test_a_kernel_is_compiled_again_when_a_part_from_another_file_changes(tmp_path):
    package = tmp_path / "selectenv"
    shutil.copytree(Path(selectenv.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__", "*.npz"))
    (package / "kernels/user.py").write_text(USER)
    command = [sys.executable, "-c", "from selectenv.kernels.user import doubled; print(doubled(1.0))"]
    found = []
    for shift in (1, 1, 20):
        source = PART.format(shift)
        if not (package / "kernels/part.py").exists() or (package / "kernels/part.py").read_text() != source:
            (package / "kernels/part.py").write_text(source)
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        found.append((float(ran.stdout), NOTICE in ran.stderr))
    assert found == [(4.0, True), (4.0, False), (42.0, True)]
