"""Names of the shapes the demo knows; imports nothing, so that `--help` answers at once."""

from enum import StrEnum


class Shape(StrEnum):
    """What can be shown."""

    ACTIVE_PASSIVE = "active-passive"
    ACTIVE_ACTIVE = "active-active"
    HUB_AND_SPOKE = "hub-and-spoke"
