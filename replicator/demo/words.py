"""What the demo says about a record, in words. Pure."""

from replicator.demo.reading import Found
from replicator.demo.scenario import Scenario
from replicator.policy.copies.provenance import Hop, parse_hops


def explain_record(found: Found, scenario: Scenario) -> list[str]:
    """A copied record and what tells that it is a copy, line by line."""
    return [
        f"One record on {found.cluster}, {place(found)}:",
        f"  key {_text(found.key)}, {_size(found.value)}",
        *(_whole() if found.hops is None else _marked(found.hops)),
        scenario.moral,
    ]


def _marked(header: bytes) -> list[str]:
    hops = ", then ".join(map(_hop, parse_hops(header) or ()))
    return [
        f"  replicator-hops: {_text(header)}",
        f"The header lists the record's hops, oldest first: {hops}.",
    ]


def _whole() -> list[str]:
    return [
        "  no header of ours: it was copied in a whole batch, as its producer wrote it",
        "The batch names its producer, and the control topic says which producers are lanes.",
    ]


def place(found: Found) -> str:
    """Topic, partition and offset."""
    return f"{found.topic}/{found.partition} offset {found.offset}"


def seconds(value: float | None) -> str:
    """A lag as text."""
    return "?" if value is None else f"{value:.1f}"


def numbers(values: tuple[int, ...]) -> str:
    """Lane numbers, short: ``0-2,5``."""
    parts: list[list[int]] = []
    for value in sorted(values):
        if parts and value == parts[-1][-1] + 1:
            parts[-1].append(value)
        else:
            parts.append([value])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in parts)


def _hop(hop: Hop) -> str:
    if hop.topic is None:
        return f"read on {hop.alias}"
    return f"read on {hop.alias} from {hop.topic}, partition {hop.partition}, offset {hop.offset}"


def _size(value: bytes | None) -> str:
    return "no value: a tombstone" if value is None else f"value of {len(value)} bytes"


def _text(data: bytes | None) -> str:
    return "none" if data is None else data.decode("utf-8", "replace")
