"""What a transition did, as the interface contract spells it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from replicator.failover.report.backlog import WHOLE_TOPIC, Unknown, unknown_words
from replicator.identifiers import JsonObject

Outcome = Literal["done", "refused", "rolled-back"]


@dataclass(frozen=True, slots=True)
class Check:
    """The verdict of one preflight check, with its reason and, when it fails, a remedy."""

    check: str
    ok: bool
    detail: str
    remedy: str = ""

    def as_json(self) -> JsonObject:
        """The object of the contract."""
        return {"check": self.check, "ok": self.ok, "detail": self.detail, "remedy": self.remedy}


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step: how long it took, its result in one line, and its evidence."""

    step: str
    seconds: float
    result: str
    evidence: Mapping[str, object] = field(default_factory=dict)

    def as_json(self) -> JsonObject:
        """The object of the contract."""
        return {
            "step": self.step,
            "seconds": round(self.seconds, 3),
            "result": self.result,
            "evidence": dict(self.evidence),
        }


@dataclass(frozen=True, slots=True)
class TopicLoss:
    """Records of one topic that did not reach the new cluster, and the time they span at most."""

    topic: str
    records: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Loss:
    """What is missing on the new cluster.

    ``exact`` when the old cluster could be read; not ``known`` where a part of it is not known, for the
    reasons in ``unknown``: the records are those of the rest then.
    """

    topics: tuple[TopicLoss, ...] = ()
    exact: bool = True
    known: bool = True
    unknown: tuple[Unknown, ...] = ()

    @property
    def records(self) -> int:
        """Over all topics."""
        return sum(topic.records for topic in self.topics)

    @property
    def seconds(self) -> float:
        """Of the topic that lost the longest time."""
        return max((topic.seconds for topic in self.topics if topic.records), default=0.0)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Self:
        """What ``as_json`` gave."""
        topics = tuple(
            TopicLoss(one["topic"], one["records"], one["seconds"]) for one in told["topics"]
        )
        unknown = tuple(
            Unknown(
                one["topic"], one["reason"],
                WHOLE_TOPIC if one["partition"] is None else one["partition"],
            )
            for one in told.get("unknown", ())
        )  # fmt: skip
        return cls(topics, bool(told["exact"]), bool(told["known"]), unknown)

    def words(self) -> str:
        """In one line, for people: a bound is called one, and what is not known comes first."""
        by = "exactly" if self.exact else "at most"
        stated = f"{by} {self.records} records, {self.seconds:.1f} s"
        if self.known:
            return stated
        reasons = unknown_words(self.unknown) or "the old cluster was never in contact"
        return f"not known ({reasons})" + (f"; of the rest {stated}" if self.records else "")

    def as_json(self) -> JsonObject:
        """The object of the contract."""
        return {
            "records": self.records,
            "seconds": round(self.seconds, 3),
            "exact": self.exact,
            "known": self.known,
            "unknown": [one.as_json() for one in self.unknown],
            "topics": [
                {"topic": one.topic, "records": one.records, "seconds": round(one.seconds, 3)}
                for one in self.topics
            ],
        }


@dataclass(frozen=True, slots=True)
class TransitionReport:
    """The whole of a transition; ``client_properties`` is for clients of the new active cluster.

    ``rto_seconds`` runs from the moment writers were fenced (switchover) or the command began
    (failover) to the moment the new cluster takes writers; None when it never did.
    """

    id: str
    kind: str
    link: str
    from_cluster: str
    to_cluster: str
    epoch: int
    outcome: Outcome
    at_ms: int
    by: str
    plan_hash: str = ""
    reason: str = ""
    checks: tuple[Check, ...] = ()
    steps: tuple[StepResult, ...] = ()
    loss: Loss = Loss()
    rto_seconds: float | None = None
    fencing: str = "none"
    dry_run: bool = False
    client_properties: str = ""

    def as_json(self) -> JsonObject:
        """The object of ``switchover``, ``failover``, ``failback`` and of ``history``."""
        return {
            "id": self.id,
            "kind": self.kind,
            "link": self.link,
            "from": self.from_cluster,
            "to": self.to_cluster,
            "epoch": self.epoch,
            "outcome": self.outcome,
            "reason": self.reason,
            "dryRun": self.dry_run,
            "at": self.at_ms,
            "by": self.by,
            "planHash": self.plan_hash,
            "checks": [check.as_json() for check in self.checks],
            "steps": [step.as_json() for step in self.steps],
            "loss": self.loss.as_json(),
            "rtoSeconds": None if self.rto_seconds is None else round(self.rto_seconds, 3),
            "fencing": self.fencing,
            "clientProperties": self.client_properties,
        }
