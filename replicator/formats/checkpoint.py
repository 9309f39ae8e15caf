"""Checkpoints: how far each source partition was copied, stored on the target beside the data.

One record per source partition in the checkpoints topic, in the partition of the lane that owns it,
written in the same transaction as the records it accounts for. A reader of the checkpoint that holds
therefore knows exactly which records are on the target.

Which one holds: in one partition of the checkpoints topic the later record, whatever its time says
(the clocks of two owners may differ); between partitions, which are read one after the other while
lanes change, ``replaces`` decides.
"""

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from replicator.errors import StoredFormatError
from replicator.formats.left_out import LeftOut, read_left_out
from replicator.identifiers import TopicPartition, is_canary_topic

VERSION = 1

ADOPTED = "adopted"
"""Extra field of a checkpoint: the source offset at which we began to copy after another program."""

NONE_COPIED = -2
"""In the place of the last record's source offset: nothing was written, so nothing of ours can be missing."""


@dataclass(frozen=True, slots=True)
class TargetClaim:
    """What a target partition held when a checkpoint was made.

    ``end`` is an offset that its log reached at least (-1 when nothing is claimed), ``leader_epoch`` the
    epoch of the leader that was asked last, ``last_copied`` the source offset of the last record that
    was written to it (-1 when not known, ``NONE_COPIED`` when none was). ``rewinds`` are target and source offsets, in order: copies from that target
    offset on begin again at that source offset, because the source's log was cut or made anew. Older copies may name
    higher source offsets.
    """

    topic_id: str = ""
    end: int = -1
    leader_epoch: int = -1
    last_copied: int = -1
    rewinds: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class TargetLoss:
    """How often the target had lost records that it had acknowledged, and what was found the last time."""

    count: int = 0
    at_ms: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """State of one source partition as its lane last committed it.

    ``offset`` is the next source offset to copy. ``timestamp_ms`` is the source timestamp of the
    last record that was read (-1 when none was). ``at_ms`` is when the checkpoint was made.
    ``problem`` is empty unless the partition is stopped, then it is a problem code, with ``detail``.
    ``position_epoch`` is the leader epoch of the last record read before ``offset`` (-1 when not known)
    and ``record_end`` the offset behind that record: between the two stand only markers and aborted
    records. With both the source can tell whether its log was cut there and written anew. With ``epoch_of_leader``
    it is no record's epoch, but that of a leader under which the log had reached ``record_end``.
    ``start`` is where the flow began to copy the partition (-1 when not known). ``target`` says what the
    target's log was like, ``target_loss`` what was last found missing in it. ``left_out`` are records that
    were passed without a copy, as those in quarantine.
    ``accepted_gap`` is the last operator decision this partition acted on. ``records``, ``bytes``
    and ``dropped`` count over the life of the flow. ``ranged`` of the records were copied by ranges (a bulk sync), under
    transactional ids of their own. ``producer`` is the id under which the lane writes whole batches and
    that was registered long before (-1 where it does not say). ``extra`` keeps fields of newer versions.
    """

    topic: str
    partition: int
    offset: int
    topic_id: str = ""
    timestamp_ms: int = -1
    at_ms: int = 0
    problem: str = ""
    detail: str = ""
    accepted_gap: str = ""
    records: int = 0
    bytes: int = 0
    dropped: int = 0
    quarantined: int = 0
    leader_epoch: int = -1
    position_epoch: int = -1
    record_end: int = -1
    epoch_of_leader: bool = False
    start: int = -1
    target: TargetClaim = TargetClaim()
    target_loss: TargetLoss = TargetLoss()
    left_out: LeftOut = LeftOut()  # noqa: RUF009  frozen, so one instance is safe
    producer: int = -1
    ranged: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def copied_by_lanes(self) -> bool:
        """Whether lanes wrote copies under their own transactional ids; those of a canary are not counted."""
        if is_canary_topic(self.topic):
            return self.target.last_copied >= 0
        return self.records > self.ranged

    def key(self) -> builtins.bytes:
        """The record key: stable, so that compaction keeps one per source partition."""
        return encode_key(self.topic, self.partition)

    def value(self) -> builtins.bytes:
        """The record value as canonical JSON."""
        return orjson.dumps(
            {
                **self.extra,
                "v": VERSION,
                "offset": self.offset,
                "topicId": self.topic_id,
                "timestamp": self.timestamp_ms,
                "at": self.at_ms,
                "problem": self.problem,
                "detail": self.detail,
                "acceptedGap": self.accepted_gap,
                "records": self.records,
                "bytes": self.bytes,
                "dropped": self.dropped,
                "quarantined": self.quarantined,
                "leaderEpoch": self.leader_epoch,
                "positionEpoch": -1 if self.epoch_of_leader else self.position_epoch,
                **self._claims(),
            },
            option=orjson.OPT_SORT_KEYS,
        )

    def _claims(self) -> dict[str, object]:
        """What is said of both logs; with its position, because older releases only hand it on."""
        claims: dict[str, Any] = {}
        if self.record_end >= 0:
            claims["lastRecord"] = {"end": self.record_end, "position": self.offset}
            if self.epoch_of_leader and self.position_epoch >= 0:
                claims["lastRecord"]["leaderEpoch"] = self.position_epoch
        if self.start >= 0:
            claims["start"] = self.start
        if self.target.end >= 0:
            claims["target"] = {
                "topicId": self.target.topic_id,
                "end": self.target.end,
                "leaderEpoch": self.target.leader_epoch,
                "lastCopied": self.target.last_copied,
                "position": self.offset,
            }
            if self.target.rewinds:
                claims["target"]["rewinds"] = self.target.rewinds
        if self.target_loss.count:
            claims["targetLoss"] = {
                "count": self.target_loss.count,
                "at": self.target_loss.at_ms,
                "detail": self.target_loss.detail,
            }
        if self.producer >= 0:
            claims["producer"] = self.producer
        if self.ranged:
            claims["ranged"] = self.ranged
        return {**claims, **self.left_out.stored(self.offset)}


_KNOWN = frozenset(
    {
        "acceptedGap", "at", "bytes", "detail", "dropped", "lastRecord", "leaderEpoch", "leftOut",
        "offset", "positionEpoch", "problem", "producer", "quarantined", "ranged", "records", "start", "target", "targetLoss",
        "timestamp", "topicId", "v",
    }
)  # fmt: skip


def encode_key(topic: str, partition: int) -> bytes:
    """The key of a partition's checkpoint."""
    return orjson.dumps(
        {"kind": "checkpoint", "partition": partition, "topic": topic, "v": VERSION},
        option=orjson.OPT_SORT_KEYS,
    )


def decode_checkpoint(key: bytes, value: bytes) -> Checkpoint | None:
    """Reads one stored checkpoint; None for keys of another kind (offset index entries).

    Raises:
        StoredFormatError: for an unknown version or text that is not ours; nothing is guessed.
    """
    try:
        where = orjson.loads(key)
        kind, version = where["kind"], where["v"]
        if kind != "checkpoint":
            return None
        what = orjson.loads(value)
        if version != VERSION or what["v"] != VERSION:
            raise StoredFormatError(
                f"a checkpoint has version {what['v']}, this release reads {VERSION}",
                remedy="Run the release that wrote it, or a newer one.",
            )
        return Checkpoint(
            topic=where["topic"],
            partition=where["partition"],
            offset=what["offset"],
            topic_id=what["topicId"],
            timestamp_ms=what["timestamp"],
            at_ms=what["at"],
            problem=what["problem"],
            detail=what["detail"],
            accepted_gap=what["acceptedGap"],
            records=what["records"],
            bytes=what["bytes"],
            dropped=what["dropped"],
            quarantined=what.get("quarantined", 0),
            leader_epoch=what.get("leaderEpoch", -1),
            position_epoch=_position_epoch(what),
            record_end=_record_end(what),
            epoch_of_leader=_leader_epoch(what) >= 0,
            start=what.get("start", -1),
            target=_target_claim(what),
            target_loss=_target_loss(what.get("targetLoss")),
            left_out=read_left_out(
                what.get("leftOut"),
                position=what["offset"],
                quarantined=what.get("quarantined", 0),
            ),
            producer=what.get("producer", -1),
            ranged=what.get("ranged", 0),
            extra={name: item for name, item in what.items() if name not in _KNOWN},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoredFormatError(
            f"a checkpoint record cannot be read ({error})",
            remedy="Something else wrote into the checkpoints topic; nothing was guessed.",
        ) from error


def _record_end(what: Mapping[str, Any]) -> int:
    found = what.get("lastRecord")
    if found is not None and found["position"] == what["offset"]:
        return int(found["end"])
    # Older releases store the epoch only where a record stands right before the offset.
    return int(what["offset"]) if what.get("positionEpoch", -1) >= 0 else -1


def _position_epoch(what: Mapping[str, Any]) -> int:
    return max(int(what.get("positionEpoch", -1)), _leader_epoch(what))


def _leader_epoch(what: Mapping[str, Any]) -> int:
    """That of a leader, where no record's is known; older releases know nothing of it."""
    found = what.get("lastRecord")
    if found is None or found["position"] != what["offset"] or what.get("positionEpoch", -1) >= 0:
        return -1
    return int(found.get("leaderEpoch", -1))


def _target_claim(what: Mapping[str, Any]) -> TargetClaim:
    found = what.get("target")
    if found is None or found["position"] != what["offset"]:
        return TargetClaim()  # handed on by a release that does not know it: of an earlier position
    return TargetClaim(
        found["topicId"], found["end"], found["leaderEpoch"], found.get("lastCopied", -1),
        tuple((int(target), int(source)) for target, source in found.get("rewinds", ())),
    )  # fmt: skip


def _target_loss(found: Mapping[str, Any] | None) -> TargetLoss:
    return (
        TargetLoss() if found is None else TargetLoss(found["count"], found["at"], found["detail"])
    )


def decode_checkpoints(records: Mapping[bytes, bytes]) -> dict[TopicPartition, Checkpoint]:
    """Reads the last value of each key, as a compacted read gives them."""
    found: dict[TopicPartition, Checkpoint] = {}
    for key, value in records.items():
        checkpoint = decode_checkpoint(key, value)
        if checkpoint is not None:
            found[checkpoint.topic, checkpoint.partition] = checkpoint
    return found


def replaces(found: Checkpoint, held: Checkpoint | None) -> bool:
    """Whether a checkpoint holds over one from another partition of the checkpoints topic.

    The one made later holds, and of two made in the same millisecond the one that is further.
    """
    return held is None or (found.at_ms, found.offset) >= (held.at_ms, held.offset)


def merge_checkpoints(
    stored: Mapping[int, Mapping[bytes, bytes]],
) -> dict[TopicPartition, Checkpoint]:
    """The checkpoint that holds for each source partition, from the last values of each lane.

    Raises:
        StoredFormatError: see ``decode_checkpoint``.
    """
    merged: dict[TopicPartition, Checkpoint] = {}
    for records in stored.values():
        for key, checkpoint in decode_checkpoints(records).items():
            if replaces(checkpoint, merged.get(key)):
                merged[key] = checkpoint
    return merged
