"""A process that compiles the kernels and one that loads them from the cache train the same weights."""

import os
import subprocess
import sys

CODE = """
import hashlib
import numpy as np
from selectenv.kernels.network.packed_images import pack
from selectenv.kernels.network.patches import find_patches
from selectenv.kernels.network.updates import Transitions
from selectenv.learners.architectures import ImageArchitecture
from selectenv.learners.training_run import IqlRun, Settings

rng = np.random.default_rng(0)
images = rng.random((40, 10, 10, 4)) < 0.1
state, after = rng.integers(40, size=(2, 60)).astype(np.int32)
data = Transitions(state, rng.integers(6, size=60).astype(np.int32), after, rng.random(60, np.float32))
run = IqlRun(data, ImageArchitecture(4, find_patches(pack(images), images.shape[1:])), 6, 0.99, Settings(batch=16), rng)
run.advance(rng.integers(60, size=(50, 16)), 0)
weights = b"".join(network.flat.tobytes() for network in run.networks.values())
print(hashlib.sha256(weights).hexdigest())
"""


def test_compiling_and_loading_give_the_same_weights(tmp_path):
    def weights():
        env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        return subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, env=env, check=True)

    compiled, loaded = weights(), weights()
    assert "compiling" in compiled.stderr
    assert loaded.stderr == ""
    assert compiled.stdout == loaded.stdout
