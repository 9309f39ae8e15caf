"""Reads a tail that a failback exported."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

from replicator.failover.clusters.tail import TailRecord


def read_export(file: Path) -> Iterator[TailRecord]:
    """The records of an exported file, in its order."""
    with file.open("rb") as lines:
        for line in lines:
            one = json.loads(line)
            yield TailRecord(
                topic=one["topic"],
                partition=one["partition"],
                offset=one["offset"],
                timestamp_ms=one["timestamp"],
                key=_bytes(one["key"]),
                value=_bytes(one["value"]),
                headers=tuple((each["name"], _bytes(each["value"])) for each in one["headers"]),
            )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
