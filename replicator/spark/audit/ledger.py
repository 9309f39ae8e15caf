"""The books of an audit: what each span of time should hold and what arrived. Pure.

A **bucket** is a span of record time of one partition. Rounds only look at what is new and add to
the books; the books and how far they go are stored together, so that a killed audit counts nothing
twice. Counts cannot tell a lost record from one that another duplicate stands in for: `verify` can.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from replicator.errors import StoredFormatError
from replicator.identifiers import TopicPartition
from replicator.kafka.clients.wire_json import encode_key, encode_value

VERSION = 1


@dataclass(frozen=True, slots=True)
class Bucket:
    """One span of one partition.

    Attributes:
        expected: source records that must have a copy.
        found: copies of them.
        excused: source records that rightly have none.
        from_offset: the first source offset in the span, -1 when none is known.
        to_offset: the last one.
        missing_from: the first source offset that has no copy, -1 when none is known.
        missing_to: the last one.
        latency_samples: how often the lane noted when a copy was there.
        latency_sum_ms: how late those were, together.
        latency_max_ms: and the latest.
        counted_ms: when a round last added to it, milliseconds since the epoch.
    """

    topic: str
    partition: int
    at_ms: int
    expected: int = 0
    found: int = 0
    excused: int = 0
    from_offset: int = -1
    to_offset: int = -1
    missing_from: int = -1
    missing_to: int = -1
    latency_samples: int = 0
    latency_sum_ms: int = 0
    latency_max_ms: int = 0
    counted_ms: int = 0

    @property
    def missing(self) -> int:
        """How many copies are not there."""
        return max(0, self.expected - self.found)

    def plus(self, other: "Bucket") -> "Bucket":
        """Both together."""
        return replace(
            self,
            expected=self.expected + other.expected,
            found=self.found + other.found,
            excused=self.excused + other.excused,
            from_offset=_first(self.from_offset, other.from_offset),
            to_offset=max(self.to_offset, other.to_offset),
            missing_from=_first(self.missing_from, other.missing_from),
            missing_to=max(self.missing_to, other.missing_to),
            latency_samples=self.latency_samples + other.latency_samples,
            latency_sum_ms=self.latency_sum_ms + other.latency_sum_ms,
            latency_max_ms=max(self.latency_max_ms, other.latency_max_ms),
            counted_ms=max(self.counted_ms, other.counted_ms),
        )


def _first(*offsets: int) -> int:
    return min((each for each in offsets if each >= 0), default=-1)


@dataclass(frozen=True, slots=True)
class Reached:
    """How far the books of a partition go on both sides, and of which topics and log they are.

    Ids are empty and ``target_start`` is -1 in books of earlier releases.
    """

    source: int
    target: int
    source_id: str = ""
    target_id: str = ""
    target_start: int = -1


BucketKey = tuple[str, int, int]


@dataclass(slots=True)
class Ledger:
    """All books of one flow with one width of buckets."""

    buckets: dict[BucketKey, Bucket] = field(default_factory=dict)
    reached: dict[TopicPartition, Reached] = field(default_factory=dict)

    def add(
        self,
        buckets: Iterable[Bucket],
        reached: Mapping[TopicPartition, Reached],
        *,
        now_ms: int = 0,
    ) -> list[Bucket]:
        """Adds a round; returns the buckets as they are now."""
        changed: list[Bucket] = []
        for each in buckets:
            bucket = replace(each, counted_ms=now_ms)
            key = bucket.topic, bucket.partition, bucket.at_ms
            held = self.buckets.get(key)
            self.buckets[key] = bucket if held is None else held.plus(bucket)
            changed.append(self.buckets[key])
        self.reached.update(reached)
        return changed

    def restart(self, keys: Iterable[TopicPartition]) -> list[Bucket]:
        """Removes the books of partitions that are counted from the start again; returns the buckets."""
        again = set(keys)
        old = [each for each in self.buckets.values() if (each.topic, each.partition) in again]
        for bucket in old:
            del self.buckets[bucket.topic, bucket.partition, bucket.at_ms]
        for key in again:
            self.reached.pop(key, None)
        return old

    def forget(self, before_ms: int) -> list[Bucket]:
        """Removes buckets that no round has added to since then; returns them."""
        old = [bucket for bucket in self.buckets.values() if bucket.counted_ms < before_ms]
        for bucket in old:
            del self.buckets[bucket.topic, bucket.partition, bucket.at_ms]
        return old


_FIELDS = (
    "expected", "found", "excused", "from_offset", "to_offset", "missing_from", "missing_to",
    "latency_samples", "latency_sum_ms", "latency_max_ms", "counted_ms",
)  # fmt: skip


def encode_bucket(bucket: Bucket, *, seconds: int) -> tuple[bytes, bytes]:
    """Key and value of a bucket in the result topic."""
    key = bucket_key(bucket, seconds=seconds)
    fields = {name: getattr(bucket, name) for name in _FIELDS}
    return key, encode_value({**fields, "missing": bucket.missing})


def bucket_key(bucket: Bucket, *, seconds: int) -> bytes:
    """The key of a bucket in the result topic."""
    return encode_key(
        {
            "kind": "bucket", "topic": bucket.topic, "partition": bucket.partition,
            "at": bucket.at_ms, "seconds": seconds,
        }
    )  # fmt: skip


def encode_reached(key: TopicPartition, reached: Reached, *, seconds: int) -> tuple[bytes, bytes]:
    """Key and value of how far a partition's books go."""
    name = encode_key({"kind": "reached", "topic": key[0], "partition": key[1], "seconds": seconds})
    return name, encode_value(asdict(reached))


def decode_ledger(
    entries: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]], *, seconds: int
) -> Ledger:
    """The books from decoded keys and values; those of other widths are passed over.

    Raises:
        StoredFormatError: something else wrote into the topic.
    """
    ledger = Ledger()
    try:
        for key, value in entries:
            if key["seconds"] != seconds:
                continue
            topic, partition = str(key["topic"]), int(key["partition"])
            if key["kind"] == "reached":
                ledger.reached[topic, partition] = Reached(
                    int(value["source"]), int(value["target"]), str(value.get("source_id", "")),
                    str(value.get("target_id", "")), int(value.get("target_start", -1)),
                )  # fmt: skip
            elif key["kind"] == "bucket":
                fields = {name: int(value[name]) for name in _FIELDS if name in value}
                bucket = Bucket(topic, partition, int(key["at"]), **fields)
                ledger.buckets[topic, partition, bucket.at_ms] = bucket
    except (KeyError, TypeError, ValueError) as error:
        raise StoredFormatError(
            f"a record of the audit topic cannot be read ({error!r})",
            remedy="Something else wrote into that topic; nothing was guessed.",
        ) from error
    return ledger
