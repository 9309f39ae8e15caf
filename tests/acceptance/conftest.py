"""The scene of an acceptance test: real clusters, real worker processes, and a judge at the end."""

import sys
from pathlib import Path

# Tests are imported one by one, without packages: the harness beside them has to be made known.
sys.path.insert(0, str(Path(__file__).parent))

from scene_fixture import pytest_runtest_makereport, scene

__all__ = ["pytest_runtest_makereport", "scene"]
