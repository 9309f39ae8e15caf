"""The scene of an acceptance test: real clusters, real worker processes, and a judge at the end."""

from scene_fixture import pytest_runtest_makereport, scene

__all__ = ["pytest_runtest_makereport", "scene"]
