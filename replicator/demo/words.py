"""What the demo says about a record, in words. Pure."""

from replicator.demo.reading import Found
from replicator.demo.scenario import Scenario
from replicator.policy.copies.provenance import Hop, parse_hops


def explain_record(found: Found, scenario: Scenario) -> list[str]:
    """A copied record and its hop header, line by line."""
    hops = parse_hops(found.hops) or ()
    return [
        f"One record on {found.cluster}, {place(found)}:",
        f"  key {_text(found.key)}, {_size(found.value)}",
        f"  replicator-hops: {_text(found.hops)}",
        "The header lists the record's hops, oldest first: "
        + ", then ".join(map(_hop, hops))
        + ".",
        scenario.moral,
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
