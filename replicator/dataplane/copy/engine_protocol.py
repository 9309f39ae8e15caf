"""The one interface both engines stand behind, and the choice between them.

An engine moves a batch of consumed records to the producer of its lane and keeps each Route's
position; it never commits, never decides where a partition starts, and never owns a client. So
``records`` (through the client library) and ``batches`` (whole record batches as bytes) can serve
the same lane, with the same checkpoints, one partition at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from replicator.dataplane.copy.source_message import SourceMessage
from replicator.dataplane.progress.partition_state import PartitionState
from replicator.policy.values import EngineChoice


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record that cannot be copied unchanged, with the reason; the record itself goes along."""

    route: PartitionState
    message: SourceMessage
    code: str
    error: str


class Engine(Protocol):
    """Copies consumed records; see the module docstring for what it must not do."""

    def copy(self, messages: Sequence[SourceMessage]) -> None:
        """Hands every record to the producer, in order, and advances the routes."""
        ...


def chosen_engine(choice: EngineChoice) -> str:
    """The engine that serves a flow: ``auto`` is ``records`` until whole batches are offered."""
    return "records" if choice == "auto" else choice
