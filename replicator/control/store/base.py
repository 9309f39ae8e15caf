"""The form of every record of a control topic: a key that identifies a fact, a value that says it.

Wire names are camelCase; times are milliseconds since the epoch under the name ``at``.
"""

from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from replicator.kafka.wire_json import encode_key, encode_value

VERSION = 1


def wire_name(field: str) -> str:
    """The name of a field as it is stored."""
    return "at" if field == "at_ms" else to_camel(field)


class Part(BaseModel):
    """A piece of a stored value; unknown fields are kept."""

    model_config = ConfigDict(
        frozen=True, extra="allow", alias_generator=wire_name, populate_by_name=True
    )


class Record(Part):
    """One fact of a control topic: ``KEY`` names the fields that identify it."""

    KIND: ClassVar[str]
    KEY: ClassVar[tuple[str, ...]]

    @property
    def identity(self) -> tuple[Any, ...]:
        """The values of the key fields, which tell this fact from others of its kind."""
        return tuple(getattr(self, name) for name in self.KEY)

    def key(self) -> bytes:
        """The record key on the wire."""
        fields = {wire_name(name): getattr(self, name) for name in self.KEY}
        return encode_key({"kind": self.KIND, "v": VERSION, **fields})

    def encode(self) -> tuple[bytes, bytes | None]:
        """Key and value on the wire."""
        value = self.model_dump(mode="json", by_alias=True, exclude=set(self.KEY))
        return self.key(), encode_value({**value, "v": VERSION})

    def tombstone(self) -> tuple[bytes, bytes | None]:
        """Key and the absence of a value: nothing of this kind holds any more."""
        return self.key(), None


class Storable(Protocol):
    """What can be written into a control topic."""

    def encode(self) -> tuple[bytes, bytes | None]:
        """Key and value on the wire; no value ends what held under the key."""
        ...
