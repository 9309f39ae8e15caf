"""How much there is and how far a job is, in records and bytes, in words for people. Pure.

Bytes are an estimate where only records are counted: the same part of the bytes as of the records.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from replicator.identifiers import TopicPartition
from replicator.spark.base.ranges import Range

_ESTIMATE_FROM = 0.02
"""An estimate before this part is done would be of the start, not of the work."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Records, and bytes; -1 bytes are not known."""

    records: int
    size: int = -1

    def part(self, records: int) -> "Amount":
        """So many of the records, with their part of the bytes; never more than the whole."""
        done = min(max(0, records), self.records)
        if self.size < 0 or not self.records:
            return Amount(done)
        return Amount(done, self.size * done // self.records)

    def plus(self, other: "Amount") -> "Amount":
        """Both together; without records a side's bytes are none."""
        mine, others = (0 if not each.records else each.size for each in (self, other))
        size = mine + others if min(mine, others) >= 0 else -1
        return Amount(self.records + other.records, size)


def kafka_amount(
    ranges: Iterable[Range],
    sizes: Mapping[TopicPartition, int],
    spans: Mapping[TopicPartition, int],
) -> Amount:
    """The offsets of ranges, and the part of the logs' bytes on disk that they are.

    Args:
        ranges: what is read.
        sizes: bytes on disk by partition; partitions that are missing make the bytes unknown.
        spans: offsets that each log holds now.
    """
    records = size = 0
    known = True
    for one in ranges:
        key = one.topic, one.partition
        records += one.size
        known = known and key in sizes
        size += sizes.get(key, 0) * one.size // max(1, spans.get(key, one.size), one.size)
    return Amount(records, size if known and records else -1)


def progress_line(
    doing: str, done: int, total: int, seconds: float, *,
    reached: Amount | None = None, whole: Amount | None = None,
) -> str:  # fmt: skip
    """How far a job is after some seconds, with an estimate once there is enough to estimate from.

    Args:
        doing: what is being done.
        done: tasks that ended.
        total: tasks that are known.
        seconds: since it began.
        reached: records and bytes that are done.
        whole: of how many; None where it is not known, and tasks are all there is to count.
    """
    if whole is None or reached is None or not whole.records:
        said = f"{doing}: {done:,} of {total:,} tasks"
        share = done / total if total and done >= total / 10 else 0.0
    else:
        said = f"{doing}: {reached.records:,} of {whole.records:,} records"
        if whole.size >= 0 and reached.size >= 0:
            said += f", {size_text(reached.size)} of {size_text(whole.size)}"
        share = reached.records / whole.records
    said += f" after {span_text(seconds)}"
    if _ESTIMATE_FROM <= share < 1:
        said += f", about {span_text(seconds * (1 - share) / share)} left"
    return said


def span_text(seconds: float) -> str:
    """``45 s``, ``3 min 5 s``, ``2 h 1 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3_600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3_600} h {whole % 3_600 // 60} min"


def size_text(size: float) -> str:
    """Bytes with one decimal where that says something."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def closing_line(
    what: str, amount: Amount, *, unit: str, seconds: float, verdict: str, report: str = ""
) -> str:
    """The last line of a command, made to be quoted: what, how much, how long, verdict, report."""
    size = f", {size_text(amount.size)}" if amount.size >= 0 else ""
    where = f" {report}." if report else ""
    return f"{what}: {amount.records:,} {unit}{size} in {span_text(seconds)}: {verdict}.{where}"
