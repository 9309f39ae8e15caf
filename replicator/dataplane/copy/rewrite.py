"""What happens to a record that is not plain: existing hops, filters, transforms.

Kept away from the hot loop. Order matters: loops are dropped first (nothing else may see them),
then filters, then transforms, then our hop is added last.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from replicator.dataplane.copy.source_message import Headers, ProducedHeaders, SourceMessage
from replicator.dataplane.transport.delivery import CopyOutcome
from replicator.errors import InputError, RecordRefusedError
from replicator.identifiers import is_canary_topic
from replicator.policy.copies.filters import drop_reason
from replicator.policy.copies.provenance import Arrivals, aliases_of, find_hops, with_hop
from replicator.policy.values import DropRule


@dataclass(frozen=True, slots=True)
class Record:
    """What a transform sees and returns; topic, partition and offset are the source's.

    ``timestamp_ms`` and the place on the target are the replicator's and cannot be changed.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


Transform = Callable[[Record], Record | None]


class Returned(Protocol):
    """Tells records that whole batches brought from a blocked cluster; see ``ReturnedRecords``."""

    @property
    def active(self) -> bool:
        """Whether every record has to be asked about."""
        ...

    def holds(self, topic: str, partition: int, offset: int, /) -> bool:
        """Whether the record at a source offset is one."""
        ...


@dataclass(slots=True)
class Rewritten:
    """What is to be produced."""

    key: bytes | None
    value: bytes | None
    headers: ProducedHeaders


def load_transforms(names: Sequence[str]) -> tuple[Transform, ...]:
    """Imports each ``package.module:function``.

    Raises:
        InputError: when one cannot be imported or is not callable; all are named at once.
    """
    found: list[Transform] = []
    wrong: list[str] = []
    for name in names:
        module_name, _, attribute = name.partition(":")
        try:
            function = getattr(importlib.import_module(module_name), attribute)
        except Exception as error:  # noqa: BLE001  a user's module may raise anything on import
            wrong.append(f"{name} ({type(error).__name__}: {error})")
            continue
        if callable(function):
            found.append(function)
        else:
            wrong.append(f"{name} (not callable)")
    if wrong:
        raise InputError(
            f"transforms that cannot be loaded: {', '.join(wrong)}",
            remedy="Install the package into the worker's image and check the name.",
        )
    return tuple(found)


class Rewriter:
    """Applies the rules of one flow to one record at a time."""

    def __init__(
        self,
        *,
        blocked: Sequence[str],
        arrivals: Arrivals,
        filters: Sequence[DropRule],
        transforms: Sequence[Transform],
        returned: Returned | None = None,
    ) -> None:
        """``returned`` tells records without a header that came from a blocked cluster."""
        self._blocked = frozenset(blocked)
        self._arrivals = arrivals
        self._filters = tuple(filters)
        self._transforms = tuple(transforms)
        self._returned = returned
        self._rules = bool(self._filters or self._transforms)

    @property
    def active(self) -> bool:
        """Whether every record, also a plain one, has to come here."""
        return self._rules or (self._returned is not None and self._returned.active)

    def came_back(self, message: SourceMessage, outcome: CopyOutcome) -> bool:
        """Whether a whole batch brought the record from a blocked cluster; it is counted then."""
        if self._returned is None or not self._returned.active:
            return False
        place = message.topic(), message.partition(), message.offset()
        found = self._returned.holds(*place)
        if found:
            _dropped(outcome, "loop")
        return found

    def rewrite(
        self, message: SourceMessage, headers: Headers, hop: str, outcome: CopyOutcome
    ) -> Rewritten | None:
        """The record as it goes to the target, or None when it is dropped (and counted)."""
        found = find_hops(headers)
        outcome.foreign_headers += found.foreign
        if found.value is not None and not self._arrivals.wrote(
            found.value, message.topic(), message.partition()
        ):
            # An application forwarded it: its record is new, and keeps the header as it is.
            found = replace(found, index=None, value=None)
        if found.value is not None and not self._blocked.isdisjoint(aliases_of(found.value)):
            _dropped(outcome, "loop")
            return None
        key, value_bytes = message.key(), message.value()
        if is_canary_topic(message.topic()):
            return Rewritten(key, value_bytes, list(with_hop(headers, found, hop.encode())))
        if self._filters:
            reason = drop_reason(self._filters, key, value_bytes, headers)
            if reason is not None:
                _dropped(outcome, "filtered")
                return None
        extended = with_hop(headers, found, hop.encode())
        if self._transforms:
            seen_by_user = Record(
                topic=message.topic(),
                partition=message.partition(),
                offset=message.offset(),
                timestamp_ms=message.timestamp()[1],
                key=key,
                value=value_bytes,
                headers=tuple(extended[:-1]),
            )
            record = self._transformed(seen_by_user)
            if record is None:
                _dropped(outcome, "transformed")
                return None
            key, value_bytes = record.key, record.value
            extended = [*record.headers, extended[-1]]
        return Rewritten(key, value_bytes, list(extended))

    def _transformed(self, record: Record) -> Record | None:
        current: Record | None = record
        for transform in self._transforms:
            if current is None:
                break
            current = _applied(transform, current)
        return current


def _applied(transform: Transform, record: Record) -> Record | None:
    name = getattr(transform, "__qualname__", repr(transform))
    try:
        result = transform(record)
    except Exception as error:
        raise RecordRefusedError(
            f"transform {name} raised {type(error).__name__}: {error}", remedy=_MEND
        ) from error
    wrong = None if result is None else _not_a_record(result)
    if wrong is not None:
        raise RecordRefusedError(f"transform {name} returned {wrong}", remedy=_MEND)
    return result


def _not_a_record(result: object) -> str | None:
    """What is wrong with a user's result; the client would stop at it, or write something else."""
    if not isinstance(result, Record):
        return f"{type(result).__name__}, neither a Record nor None"
    for part, content in (("key", result.key), ("value", result.value)):
        if content is not None and not isinstance(content, bytes):
            return f"a {part} of type {type(content).__name__}, not bytes"
    for header in result.headers:
        match header:
            case (str(), bytes() | None):
                continue
            case _:
                return "headers that are not pairs of text and bytes"
    return None


_MEND = "Mend the transform, then replay the record from quarantine."


def _dropped(outcome: CopyOutcome, reason: str) -> None:
    outcome.dropped[reason] = outcome.dropped.get(reason, 0) + 1
