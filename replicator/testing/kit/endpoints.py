"""What workloads and scans need of a cluster: a name and how to connect."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


class Endpoint(Protocol):
    """A cluster to write to and to read from; ``LocalCluster`` is one."""

    @property
    def name(self) -> str:
        """Alias of the cluster in the topology."""
        ...

    def client_settings(self, user: str | None = None) -> dict[str, Any]:
        """Settings for librdkafka of an ordinary client."""
        ...

    def admin_settings(self) -> dict[str, Any]:
        """Settings of a client that may read everything."""
        ...


@dataclass(frozen=True, slots=True)
class RemoteCluster:
    """A cluster that the kit did not start, for drills against real links; a setting may be a callback."""

    name: str
    settings: Mapping[str, Any]

    def client_settings(self, user: str | None = None) -> dict[str, Any]:  # noqa: ARG002
        """The settings as given; they name their user themselves."""
        return dict(self.settings)

    def admin_settings(self) -> dict[str, Any]:
        """The same: there is no other way in."""
        return dict(self.settings)
