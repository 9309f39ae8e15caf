"""Injects an exported tail after its failback ended, into the cluster that never received it."""

import base64
import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replicator.control.records.role_records import TransitionRecord
from replicator.control.store.state import ControlState
from replicator.errors import InputError, RefusedError
from replicator.failover.clusters.link_clusters import LinkClusters, find_link
from replicator.failover.clusters.tail import TailRecord
from replicator.failover.clusters.tail_writer import TailWriter
from replicator.identifiers import JsonObject, TopicPartition
from replicator.topology.plan import LinkPlan, Plan

ENDING = "-tail.jsonl"


@dataclass(frozen=True, slots=True)
class LateTail:
    """What was injected where; ``before`` were there already, ``kept`` cannot be written unchanged."""

    link: str
    transition: str
    cluster: str
    injected: int = 0
    before: int = 0
    kept: int = 0
    confirmed: bool = True

    def as_json(self) -> JsonObject:
        """The object of ``tail inject``."""
        return {
            "link": self.link, "transition": self.transition, "cluster": self.cluster,
            "injected": self.injected, "before": self.before, "kept": self.kept,
            "outcome": "done" if self.confirmed else "refused",
        }  # fmt: skip


def read_exported(file: Path, *, topics: Collection[str] | None) -> tuple[TailRecord, ...]:
    """The records of an export in its order, of some topics if asked.

    Raises:
        InputError: it is no export.
    """
    try:
        with file.open("rb") as lines:
            found = tuple(_record(json.loads(line)) for line in lines)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{file} cannot be read as an exported tail: {error}", subject=str(file),
            remedy=f"Give the file that a failback wrote: LINK-ID{ENDING}.",
        ) from error  # fmt: skip
    return found if not topics else tuple(one for one in found if one.topic in topics)


def inject_export(
    plan: Plan,
    name: str,
    file: Path,
    records: tuple[TailRecord, ...],
    *,
    confirmed: Callable[[str], bool],
) -> LateTail:
    """Injects what was not injected before; doing it twice equals doing it once. Blocking.

    Raises:
        InputError: no such link, or the file is not named after a failback of it.
        RefusedError: that failback has not ended.
        ReplicatorError: a cluster does not answer; do it again.
    """
    link = find_link(plan, name)
    transition = file.name.removeprefix(f"{name}-").removesuffix(ENDING)
    with _clusters(plan, link) as clusters:
        states = {str(one.alias): clusters.control(one) for one in (clusters.old, clusters.new)}
        header = _failback(states, link, transition, file)
    # The cluster that was active then never got the tail; another one may be active now.
    target, source = plan.cluster(header.source), header.target
    text = f"Inject {len(records)} records of {source} into {target.alias}?"
    if not confirmed(text):
        return LateTail(name, transition, header.source, confirmed=False)
    flow = next(
        one
        for one in (*link.flows, *link.standby)
        if (one.source, one.target) == (source, target.alias)
    )
    writer = TailWriter(
        target, topology=plan.topology, link=name, transition=transition, source=source,
        provenance=flow.policy.single_provenance,
    )  # fmt: skip
    try:
        with _clusters(plan, link) as clusters:  # read once no other injector can write any more
            done = _injected(clusters.control(target), name, transition)
        left = tuple(
            one for one in records if one.offset >= done.get((one.topic, one.partition), 0)
        )
        counted: dict[TopicPartition, int] = {}
        injected = writer.write((one for one in left if one.injectable), counted=counted)
    finally:
        writer.close()
    kept = sum(not one.injectable for one in left)
    return LateTail(name, transition, header.source, injected, len(records) - len(left), kept)


def _clusters(plan: Plan, link: LinkPlan) -> LinkClusters:
    first, second = (plan.cluster(alias) for alias in link.clusters)
    return LinkClusters(plan, link, first, second)


def _failback(
    states: dict[str, ControlState], link: LinkPlan, transition: str, file: Path
) -> TransitionRecord:
    for state in states.values():
        for one in state.transitions(link.name):
            if one.id != transition or one.kind != "failback":
                continue
            if one.state == "open":
                raise RefusedError(
                    f"the failback {transition} is still open", subject=link.name,
                    remedy=f"Finish it first: replicator failback --link {link.name} --resume",
                )  # fmt: skip
            return one
    raise InputError(
        f"no failback of link '{link.name}' is on record under the id '{transition}'",
        subject=str(file), remedy=f"Keep the name that it was written under: LINK-ID{ENDING}.",
    )  # fmt: skip


def _injected(state: ControlState, link: str, transition: str) -> dict[TopicPartition, int]:
    return {(one.topic, one.partition): one.next_offset for one in state.salvaged(link, transition)}


def _record(one: dict[str, Any]) -> TailRecord:
    return TailRecord(
        topic=one["topic"], partition=one["partition"], offset=one["offset"],
        timestamp_ms=one["timestamp"], key=_bytes(one["key"]), value=_bytes(one["value"]),
        headers=tuple(_headers(one["headers"])),
    )  # fmt: skip


def _headers(stored: list[dict[str, Any]]) -> Iterator[tuple[str, bytes | None]]:
    for one in stored:
        yield one["name"], _bytes(one["value"])


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
