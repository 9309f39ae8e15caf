"""What a bulk run leaves behind for people and audits: every range with its count and checksum.

The checksum of a range is the CRC-32C of the keys and values that were read, in order of offset, or, where
whole batches were copied, of their offsets and checksums; the
manifest's own is the SHA-256 over all ranges as canonical JSON.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import orjson

from replicator.identifiers import JsonObject
from replicator.spark.copy.bulk_plan import BulkPlan
from replicator.spark.copy.task import BATCHES, CopyResult

VERSION = 1


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the driver knows beside the results; times in seconds since the epoch."""

    topology: str
    flow: str
    job: str
    run: str
    master: str
    began_at: float
    ended_at: float


def _checksum(result: CopyResult) -> str:
    """``crc32c:…`` of keys and values, ``crc32c-batches:…`` of the checksums of whole batches."""
    if result.checksum.startswith(BATCHES):
        return f"crc32c-{result.checksum}"
    return f"crc32c:{result.checksum or '00000000'}"


def manifest(facts: RunFacts, found: BulkPlan, results: Iterable[CopyResult]) -> JsonObject:
    """The manifest of a job: what this run copied, and what its earlier runs had finished."""
    planned = {one.key: one for one in found.ranges}
    names = {one.record.topic: one.record.target for one in found.ranges}
    ranges: list[JsonObject] = []
    for result in sorted(results, key=lambda each: (each.topic, each.partition)):
        plan = planned.get((result.topic, result.partition))
        ranges.append(
            {
                "topic": result.topic,
                "target": names.get(result.topic, result.topic),
                "partition": result.partition,
                "start": result.start,
                "plannedEnd": plan.end if plan is not None else None,
                "end": result.position,
                "records": result.records,
                "bytes": result.size,
                "checksum": _checksum(result),
                "superseded": result.superseded,
                "seconds": result.seconds,
                "problem": result.problem,
                "detail": result.detail,
                "gaps": list(result.gaps),
            }
        )
    canonical = orjson.dumps(ranges, option=orjson.OPT_SORT_KEYS)
    return {
        "v": VERSION,
        "topology": facts.topology,
        "flow": facts.flow,
        "job": facts.job,
        "run": facts.run,
        "master": facts.master,
        "compacted": "latest" if found.keeps_latest else "all",
        "beganAt": round(facts.began_at, 3),
        "endedAt": round(facts.ended_at, 3),
        "seconds": round(facts.ended_at - facts.began_at, 3),
        "records": sum(int(str(each["records"])) for each in ranges),
        "bytes": sum(int(str(each["bytes"])) for each in ranges),
        "checksum": f"sha256:{hashlib.sha256(canonical).hexdigest()}",
        "ranges": ranges,
    }
