"""The content of a record as 128 bits: key, value, headers except our hop, timestamp.

Lengths are part of the hash, so that no two different records can look alike by shifting bytes from
one field into the next; a null has a length of its own.
"""

import struct
from collections.abc import Sequence
from hashlib import blake2b

from replicator.identifiers import HOPS_HEADER
from replicator.policy.copies.provenance import find_hops
from replicator.policy.copies.provenance import without_last_hop as split_last_hop

Headers = Sequence[tuple[str, bytes | None]]

_LENGTHS = struct.Struct("<iiiq")
_NULL = -1
SIZE = 16
NO_TIME = -1
"""Stands for a timestamp that is not compared."""


def content_digest(
    key: bytes | None, value: bytes | None, headers: Headers, timestamp_ms: int
) -> bytes:
    """16 bytes that two records share only when all of their content is the same."""
    hashed = blake2b(
        _LENGTHS.pack(
            _NULL if key is None else len(key),
            _NULL if value is None else len(value),
            len(headers),
            timestamp_ms,
        ),
        digest_size=SIZE,
    )
    if key:
        hashed.update(key)
    if value:
        hashed.update(value)
    for name, content in headers:
        encoded = name.encode()
        size = _NULL if content is None else len(content)
        hashed.update(_LENGTHS.pack(len(encoded), size, 0, 0))
        hashed.update(encoded)
        if content:
            hashed.update(content)
    return hashed.digest()


def key_digest(key: bytes | None) -> bytes:
    """16 bytes of a key alone; no key is not an empty key."""
    return blake2b(b"n" if key is None else b"k" + key, digest_size=SIZE).digest()


def without_last_hop(headers: Headers) -> tuple[Headers, bytes | None]:
    """The headers as they were before the last hop was added, and that hop.

    The hops before it stand last in the list, where the engine puts them; so the two sides of a copy
    come out alike, wherever an earlier header of ours stood.
    """
    found = find_hops(headers)
    if found.value is None:
        return headers, None
    kept = [header for at, header in enumerate(headers) if at != found.index]
    before, last = split_last_hop(found.value)
    if before is not None:
        kept.append((HOPS_HEADER, before))
    return kept, last
