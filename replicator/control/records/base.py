"""The form of every record of a control topic: a key that identifies a fact, a value that says it.

Wire names are camelCase; times are milliseconds since the epoch under the name ``at``.
"""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from replicator.errors import StoredFormatError
from replicator.kafka.clients.wire_json import decode_value, encode_key, encode_value

VERSION = 1

LARGE_BYTES = 900_000
"""A value above this is stored compressed: the client library refuses records above 1,000,000 bytes by default,
brokers those above 1,048,588, and what is known of twenty thousand partitions is larger than that. Smaller
values stay plain, because releases that know nothing of compressed ones must be able to read whatever they
could have written themselves."""

PACKED = "z"
"""The field of a compressed value."""


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
        return self.key(), packed(encode_value({**value, "v": VERSION}))

    def tombstone(self) -> tuple[bytes, bytes | None]:
        """Key and the absence of a value: nothing of this kind holds any more."""
        return self.key(), None


class Storable(Protocol):
    """What can be written into a control topic."""

    def encode(self) -> tuple[bytes, bytes | None]:
        """Key and value on the wire; no value ends what held under the key."""
        ...


def packed(value: bytes) -> bytes:
    """A value as it is stored: compressed where it is large, else as it is."""
    if len(value) <= LARGE_BYTES:
        return value
    return encode_value({PACKED: b64encode(zlib.compress(value)).decode(), "v": VERSION})


def unpacked(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The inverse, on a decoded value; others are given back as they are.

    Raises:
        StoredFormatError: it is no value of ours.
    """
    inner = content.get(PACKED)
    if not isinstance(inner, str):
        return content
    try:
        plain = zlib.decompress(b64decode(inner))
    except (ValueError, zlib.error) as error:
        raise StoredFormatError(
            f"a compressed control record cannot be read ({error})",
            remedy="Something else wrote into the control topic; nothing was guessed.",
        ) from error
    return decode_value(plain)
