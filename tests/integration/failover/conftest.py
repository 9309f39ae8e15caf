"""A link between the shared clusters, see ``link_lab``."""

import pytest
from link_lab import Link


@pytest.fixture
def link(tmp_path, unique, east, west):
    """Makes the link between the shared clusters."""

    def make(**fields):
        return Link(tmp_path, unique, east, west, **fields)

    return make
