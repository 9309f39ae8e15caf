"""The chart under test: rendered by the real Helm engine, one rendering per file of ci/."""

import sys
from pathlib import Path

import pytest

# Tests are imported one by one, without packages: what lies beside them has to be made known.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "deploy" / "generate"))
sys.path.insert(0, str(Path(__file__).parent))

from chart_engine import CI_FILES, Rendered, render_file


@pytest.fixture(params=sorted(CI_FILES), scope="session")
def rendered(request: pytest.FixtureRequest) -> Rendered:
    """Every file of ci/, one after the other."""
    return render_file(request.param)
