"""Keys and values of control records: canonical JSON with a version.

Canonical means: keys sorted, no spaces. So two writers give the same bytes for the same thing, and
compaction keeps one of them. Fields that this version does not know are kept as they are; a version
that it does not know is refused, because guessing at progress or roles would lose records.
"""

from collections.abc import Container, Mapping
from typing import Any

import orjson

from replicator.errors import StoredFormatError

VERSION = 1


def encode_key(fields: Mapping[str, Any]) -> bytes:
    """The key as bytes, with ``v`` added."""
    return orjson.dumps({"v": VERSION, **fields}, option=orjson.OPT_SORT_KEYS)


def encode_value(fields: Mapping[str, Any]) -> bytes:
    """The value as bytes, with ``v`` added."""
    return encode_key(fields)


def decode_key(
    data: bytes | None, *, subject: str = "", kinds: Container[object] | None = None
) -> dict[str, Any]:
    """Reads a key; ``v`` stays in the answer.

    With ``kinds``, a key of another kind is given back whatever its version: a newer release may have
    written it, and it is the caller's to leave it alone.

    Raises:
        StoredFormatError: it is no JSON object, or of an unknown version.
    """
    fields = _object(data, "key", subject)
    if kinds is None or fields.get("kind") in kinds:
        _check_version(fields, "key", subject)
    return fields


def decode_value(data: bytes | None, *, subject: str = "") -> dict[str, Any]:
    """Reads a value; ``v`` and unknown fields stay in the answer.

    Raises:
        StoredFormatError: it is no JSON object, or of an unknown version.
    """
    fields = _object(data, "value", subject)
    _check_version(fields, "value", subject)
    return fields


def _object(data: bytes | None, part: str, subject: str) -> dict[str, Any]:
    try:
        fields = orjson.loads(data or b"")
    except orjson.JSONDecodeError:
        fields = None
    if not isinstance(fields, dict):
        raise StoredFormatError(
            f"the {part} of a stored record is not a JSON object: {(data or b'')[:80]!r}",
            subject=subject,
            remedy="Somebody else wrote into a topic of the replicator; remove that record.",
        )
    return fields


def _check_version(fields: Mapping[str, Any], part: str, subject: str) -> None:
    version = fields.get("v")
    if version is True or version != VERSION:
        raise StoredFormatError(
            f"the {part} of a stored record has version {version!r}; this program knows {VERSION}",
            subject=subject,
            remedy="Run the newer program that wrote it.",
        )
