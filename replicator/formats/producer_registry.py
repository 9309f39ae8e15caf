"""The producer registry: which producer ids write a flow's whole batches. Pure.

Whole batches carry no header, so the producer id in their batch header is what tells a reader that they
are copies. Each is a record of the control topic on the flow's target, acknowledged before the first
batch under the id is sent, and never taken away: a cluster gives an id to one producer only.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from replicator.errors import StoredFormatError

VERSION = 1
KIND = "producer"
MEMORY_KIND = "registry"


@dataclass(frozen=True, slots=True)
class RegisteredProducer:
    """A producer id and whose copies it writes. ``epoch`` and ``at_ms`` (wall clock) are of the registration."""

    producer_id: int
    source: str
    target: str
    link: str = ""
    epoch: int = -1
    at_ms: int = 0

    @property
    def key(self) -> bytes:
        """The key in the control topic."""
        return _dumps({"id": self.producer_id, "kind": KIND, "v": VERSION})

    @property
    def value(self) -> bytes:
        """The value in the control topic."""
        return _dumps(
            {
                "at": self.at_ms, "epoch": self.epoch, "link": self.link, "source": self.source,
                "target": self.target, "v": VERSION,
            }
        )  # fmt: skip


def decode_producer(key: bytes | None, value: bytes | None) -> RegisteredProducer | None:
    """One record of a control topic; None where it is of another kind, or takes something away.

    Raises:
        StoredFormatError: it is a registration that cannot be read.
    """
    if key is None or value is None:
        return None
    try:
        where = orjson.loads(key)
        if where["kind"] != KIND:
            return None
        what = orjson.loads(value)
        if where["v"] != VERSION or what["v"] != VERSION:
            raise ValueError(f"version {what['v']}")
        return RegisteredProducer(
            int(where["id"]), str(what["source"]), str(what["target"]), str(what.get("link", "")),
            int(what.get("epoch", -1)), int(what.get("at", 0)),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise StoredFormatError(
            f"a record of the producer registry cannot be read ({error})",
            remedy="Run the release that wrote it, or a newer one; nothing is guessed.",
        ) from error


@dataclass(frozen=True, slots=True)
class RegistryMemory:
    """The producer ids that a lane has seen in the registry of its source."""

    ids: frozenset[int] = frozenset()

    def stored(self) -> tuple[bytes, bytes]:
        """Key and value in the lane's partition of the checkpoints topic."""
        return (
            _dumps({"kind": MEMORY_KIND, "v": VERSION}),
            _dumps({"ids": sorted(self.ids), "v": VERSION}),
        )


def decode_memory(records: Mapping[bytes, bytes]) -> RegistryMemory:
    """What the lane's partition says; nothing is remembered where it says nothing.

    Raises:
        StoredFormatError: it cannot be read.
    """
    value = records.get(RegistryMemory().stored()[0])
    if value is None:
        return RegistryMemory()
    try:
        fields = orjson.loads(value)
        if fields["v"] != VERSION:
            raise ValueError(f"version {fields['v']}")
        return RegistryMemory(frozenset(int(each) for each in fields["ids"]))
    except (KeyError, TypeError, ValueError) as error:
        raise StoredFormatError(
            f"what the lane has seen of a producer registry cannot be read ({error})",
            remedy="Run the release that wrote it, or a newer one; nothing is guessed.",
        ) from error


def _dumps(fields: Mapping[str, object]) -> bytes:
    return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)
