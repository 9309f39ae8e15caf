"""``audit``: rounds of counting, their results in a topic of the target and as Parquet."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from replicator.clock import Clock, instant, json_time
from replicator.identifiers import JsonObject, TopicPartition, audit_topic, audit_transactional_id
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.wire_json import decode_key, decode_value
from replicator.kafka.logs.compacted_log import Entry
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.kafka.logs.compacted_topic import ensure_compacted_topic
from replicator.kafka.logs.log_writer import LogWriter
from replicator.spark.audit.again import cases_again, replaced
from replicator.spark.audit.counting import (
    counted,
    missing_records,
    new_cases,
    round_of,
    short_cases,
    void_books,
    with_missing,
)
from replicator.spark.audit.ledger import (
    Bucket,
    Ledger,
    Reached,
    bucket_key,
    decode_ledger,
    encode_bucket,
    encode_reached,
)
from replicator.spark.base.progress import progress
from replicator.spark.compare.amounts import compared_amount
from replicator.spark.compare.cases import Case, make_case
from replicator.spark.compare.facts import collect_facts
from replicator.topology.plan import PairPlan, Plan, find_pair

CLIENT_ID = "replicator-audit"
TIMEOUT_SECONDS = 30.0

_DAY_MS = 86_400_000
_PARQUET_DDL = (
    "topic string, partition int, bucket timestamp, seconds int, expected bigint, found bigint, "
    "missing bigint, excused bigint, fromOffset bigint, toOffset bigint, latencyMeanMs double, "
    "latencyMaxMs bigint, audited timestamp"
)


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """What is audited.

    Attributes:
        flow: ``source->target``.
        topics: source topics; empty for all.
        bucket_seconds: width of a span of time.
        parquet: a folder of any file system that Spark can write; each round adds to it.
        keep_days: how long the books keep a span that nothing is added to any more.
    """

    flow: str
    topics: frozenset[str] = frozenset()
    bucket_seconds: int = 3600
    parquet: str | None = None
    keep_days: int = 90


class Auditor:
    """Audits one flow; the audit that starts last fences an earlier one."""

    def __init__(
        self, session: SparkSession, plan: Plan, wanted: AuditRequest, *, clock: Clock
    ) -> None:
        """Reads the books of earlier rounds.

        Raises:
            InputError: the topology has no such flow.
            ReplicatorError: the target cannot be used.
        """
        self._session = session
        self._plan = plan
        self._wanted = wanted
        self._clock = clock
        self._pair: PairPlan = find_pair(plan, wanted.flow)
        self._topic = audit_topic(plan.topology, self._pair.source.alias)
        with ClusterAdmin(
            self._pair.target, client_id=CLIENT_ID, timeout_seconds=TIMEOUT_SECONDS
        ) as admin:
            ensure_compacted_topic(admin, self._topic, partitions=1)
        self._writer = LogWriter(
            self._pair.target,
            self._topic,
            client_id=CLIENT_ID,
            transactional_id=audit_transactional_id(
                plan.topology,
                self._pair.source.alias,
                self._pair.target.alias,
                wanted.bucket_seconds,
            ),
        )
        self._writer.open()
        self._ledger: Ledger | None = self._stored()
        self._skipped: list[str] = []

    def close(self) -> None:
        """Closes the connections."""
        self._writer.close()

    def round(self) -> JsonObject:
        """Counts what is new and stores it; the object of ``audit -o json``.

        Raises:
            FencedError: another audit of the flow was started.
            ReplicatorError: a cluster cannot be used.
        """
        if self._ledger is None:
            self._ledger = self._stored()
        ledger, self._ledger = self._ledger, None  # until it is known what is stored
        now_ms = round(self._clock.now() * 1000)
        found = collect_facts(
            self._plan, self._pair, topics=self._wanted.topics, from_ms=None, now_ms=now_ms
        )
        every = [make_case(number, facts) for number, facts in enumerate(found)]
        void = void_books(every, ledger)
        dropped = ledger.restart(void)
        cases = new_cases(every, ledger)
        # A quiet flow costs no Spark job, only the questions above.
        moved = [
            case
            for case in cases
            if case.source_from < case.cut or case.target_from < case.target_to
        ]
        buckets, reached = self._counted(moved)
        changed = ledger.add(buckets, reached, now_ms=now_ms)
        seconds = self._wanted.bucket_seconds
        entries: list[Entry] = [encode_bucket(bucket, seconds=seconds) for bucket in changed]
        entries += [encode_reached(key, value, seconds=seconds) for key, value in reached.items()]
        old = [
            each
            for each in dropped
            if (each.topic, each.partition, each.at_ms) not in ledger.buckets
        ]
        old += ledger.forget(now_ms - self._wanted.keep_days * _DAY_MS)
        entries += [(bucket_key(bucket, seconds=seconds), None) for bucket in old]
        self._writer.write(entries)
        self._ledger = ledger
        if self._wanted.parquet is not None and changed:
            self._append(changed, self._wanted.parquet)
        names = {case.facts.topic for case in every}
        self._skipped = sorted(names - {case.facts.topic for case in cases})
        return self._answer(ledger, names, now_ms)

    def again(self, seconds: float) -> JsonObject:
        """A round, then the spans of the last ``seconds`` counted again with both sides joined.

        Raises:
            FencedError: another audit of the flow was started.
            ReplicatorError: a cluster cannot be used.
        """
        self.round()
        ledger, self._ledger = self._ledger or self._stored(), None
        now_ms = round(self._clock.now() * 1000)
        bucket_ms = self._wanted.bucket_seconds * 1000
        from_ms = max(0, now_ms - round(seconds * 1000)) // bucket_ms * bucket_ms
        found = collect_facts(
            self._plan, self._pair, topics=self._wanted.topics, from_ms=from_ms, now_ms=now_ms
        )
        cases = cases_again([make_case(number, each) for number, each in enumerate(found)], ledger)
        buckets, _ = self._counted(cases, joined=True)
        changed = replaced(ledger, buckets, from_ms=from_ms, now_ms=now_ms)
        self._writer.write(
            [encode_bucket(each, seconds=self._wanted.bucket_seconds) for each in changed]
        )
        self._ledger = ledger
        if self._wanted.parquet is not None and changed:
            self._append(changed, self._wanted.parquet)
        return self._answer(ledger, {facts.topic for facts in found}, now_ms)

    def _answer(self, ledger: Ledger, topics: set[str], at_ms: int) -> JsonObject:
        return audit_json(
            str(self._pair.id),
            [each for each in ledger.buckets.values() if each.topic in topics],
            seconds=self._wanted.bucket_seconds,
            at_ms=at_ms,
            skipped=self._skipped,
        )

    def _counted(
        self, cases: Sequence[Case], *, joined: bool = False
    ) -> tuple[list[Bucket], dict[TopicPartition, Reached]]:
        bucket_ms = self._wanted.bucket_seconds * 1000
        if not cases:
            return [], {}
        with progress(self._session, "Auditing", whole=compared_amount(self._pair, cases)):
            rows = counted(self._session, self._pair, cases, bucket_ms=bucket_ms)
            buckets, reached = round_of(cases, rows)
            short = list(cases) if joined else short_cases(cases, buckets)
            if short:
                missing = missing_records(self._session, self._pair, short, bucket_ms=bucket_ms)
                buckets = with_missing(buckets, short, missing)
        return buckets, reached

    def _stored(self) -> Ledger:
        stored = read_compacted(
            self._pair.target, self._topic, client_id=CLIENT_ID,
            timeout_seconds=TIMEOUT_SECONDS, past_open_transactions=True, known_to_exist=True,
        )[0]  # fmt: skip
        return decode_ledger(
            [(decode_key(key), decode_value(value)) for key, value in stored.items()],
            seconds=self._wanted.bucket_seconds,
        )

    def _append(self, buckets: Sequence[Bucket], folder: str) -> None:
        now = instant(round(self._clock.now() * 1000))
        rows = [
            (
                each.topic, each.partition, instant(each.at_ms),
                self._wanted.bucket_seconds, each.expected, each.found, each.missing,
                each.excused, each.from_offset, each.to_offset, mean_latency_ms(each),
                each.latency_max_ms, now,
            )
            for each in buckets
        ]  # fmt: skip
        frame = self._session.createDataFrame(rows, _PARQUET_DDL)
        frame.coalesce(1).write.mode("append").parquet(folder)


def mean_latency_ms(bucket: Bucket) -> float | None:
    """How late copies were on average; None where nothing was noted."""
    if not bucket.latency_samples:
        return None
    return round(bucket.latency_sum_ms / bucket.latency_samples, 1)


def audit_json(
    flow: str, buckets: Iterable[Bucket], *, seconds: int, at_ms: int, skipped: Sequence[str]
) -> JsonObject:
    """Sums by topic and span, and every interval in which something is missing. Pure."""
    spans: dict[tuple[str, int], Bucket] = {}
    missing: list[JsonObject] = []
    for each in sorted(buckets, key=lambda each: (each.topic, each.at_ms, each.partition)):
        key = each.topic, each.at_ms
        spans[key] = each if key not in spans else spans[key].plus(each)
        if each.missing:
            missing.append(
                {
                    "topic": each.topic, "partition": each.partition,
                    "from": json_time(each.at_ms), "to": json_time(each.at_ms + seconds * 1000),
                    "fromOffset": each.from_offset if each.missing_from < 0 else each.missing_from,
                    "toOffset": 1 + (each.to_offset if each.missing_to < 0 else each.missing_to),
                    "records": each.missing,
                }
            )  # fmt: skip
    expected = sum(each.expected for each in spans.values())
    lacking = sum(int(str(each["records"])) for each in missing)
    return {
        "flow": flow,
        "at": json_time(at_ms),
        "bucketSeconds": seconds,
        "complete": not missing,
        "completeness": 1.0 if not expected else (expected - lacking) / expected,
        "topics": [
            {
                "topic": each.topic, "from": json_time(each.at_ms), "expected": each.expected,
                "found": each.found, "excused": each.excused,
                "latencyMeanMs": mean_latency_ms(each), "latencyMaxMs": each.latency_max_ms,
            }
            for each in spans.values()
        ],
        "missing": missing,
        "notAudited": list(skipped),
    }  # fmt: skip
