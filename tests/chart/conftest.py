"""The chart under test: rendered by the real Helm engine, one rendering per file of ci/."""

import pytest
from chart_engine import CI_FILES, Rendered, render_file


@pytest.fixture(params=sorted(CI_FILES), scope="session")
def rendered(request: pytest.FixtureRequest) -> Rendered:
    """Every file of ci/, one after the other."""
    return render_file(request.param)
