"""Settings of the whole suite: a cache of its own, and hypothesis without deadlines (kernels compile at first call)."""

import os
import tempfile

os.environ["SELECTENV_CACHE"] = tempfile.mkdtemp(prefix="selectenv-test-cache-")

from hypothesis import HealthCheck, settings

settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile("suite")
