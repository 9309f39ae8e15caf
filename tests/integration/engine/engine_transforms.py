"""Transforms as a user would write them, for tests."""

from dataclasses import replace

from replicator.dataplane.copy.rewrite import Record


def shout(record: Record) -> Record:
    """Changes the value, adds a header."""
    return replace(
        record,
        value=None if record.value is None else record.value.upper(),
        headers=(*record.headers, ("shouted", b"yes")),
    )


def only_even(record: Record) -> Record | None:
    """Drops odd numbers."""
    return record if record.value is None or int(record.value) % 2 == 0 else None


def fragile(record: Record) -> Record:
    """Fails for one record, and gives nonsense for others."""
    if record.value == b"3":
        raise LookupError("no three")
    if record.value == b"5":
        return "five"  # type: ignore[return-value]  # what the test is about
    if record.value == b"7":
        return replace(record, value=7)  # type: ignore[arg-type]  # what the test is about
    return record
