"""The whole path of one record: where it came from, and every copy of it.

Earlier places stand in the record itself. Later ones are found by translating its place over each
flow that leaves its cluster, and are believed only when the record found there names this one.
"""

from dataclasses import dataclass
from typing import Literal, cast

from replicator.errors import NotFoundError, ReplicatorError
from replicator.identifiers import JsonObject
from replicator.kafka.clients.client import TIMESTAMP_NOT_AVAILABLE, Message
from replicator.offsets.index.paths import (
    Component,
    ReplicatedPartition,
    TranslationPath,
    translation_paths,
)
from replicator.offsets.translation.sighting import UNMARKED, CopyMark
from replicator.offsets.translation.translator import Translator
from replicator.policy.copies.provenance import Headers, Hop, find_hops, parse_hops
from replicator.topology.plan import Plan

PlaceState = Literal["origin", "copy", "missing", "unreachable"]


@dataclass(frozen=True, slots=True)
class Place:
    """One cluster the record is on, was on, or should be on.

    ``copied_by_ms`` is a time at which the copy was there already, from the flow's index; None
    where the index does not say.
    """

    cluster: str
    topic: str
    partition: int
    offset: int | None
    state: PlaceState
    flow: str | None = None
    timestamp_ms: int | None = None
    copied_by_ms: int | None = None
    asked: bool = False
    reason: str = ""

    def as_json(self) -> JsonObject:
        """As ``offsets trace -o json`` shows it; the delay is since the record's own timestamp."""
        delay = None
        if self.copied_by_ms is not None and self.timestamp_ms is not None:
            delay = max(0.0, (self.copied_by_ms - self.timestamp_ms) / 1000)
        return {
            "cluster": self.cluster,
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "state": self.state,
            "flow": self.flow,
            "timestamp": self.timestamp_ms,
            "delaySecondsAtMost": delay,
            "asked": self.asked,
            "reason": self.reason,
        }


class Tracer:
    """Follows records over the clusters of a topology."""

    def __init__(self, plan: Plan, translator: Translator) -> None:
        self._plan = plan
        self._translator = translator

    def trace(self, cluster: str, topic: str, partition: int, offset: int) -> list[Place]:
        """Every place of the record, oldest first.

        Raises:
            NotFoundError: there is no record at that offset.
            ReplicatorError: the cluster that was named cannot be read.
        """
        message = self._read(cluster, topic, partition, offset)
        if message is None:
            raise NotFoundError(
                "no record stands at that offset",
                subject=f"{cluster} {topic}/{partition} at {offset}",
                remedy="It may be a transaction marker, aborted, compacted, or older than the log.",
            )
        hops = parse_hops(find_hops(_headers(message)).value) or ()
        places = [self._earlier(hop, at) for at, hop in enumerate(hops)]
        if not hops:
            counted = self._counted_origin(cluster, topic, partition, offset)
            if counted is not None:
                places, hops = [counted[0]], (counted[1],)
        places.append(
            Place(
                cluster=cluster,
                topic=topic,
                partition=partition,
                offset=offset,
                state="copy" if hops else "origin",
                flow=f"{hops[-1].alias}->{cluster}" if hops else None,
                timestamp_ms=_timestamp(message),
                copied_by_ms=self._copied_by(hops[-1], cluster) if hops else None,
                asked=True,
            )
        )
        seen = {place.cluster for place in places}
        ahead = [place for place in places if place.offset is not None]
        while ahead:
            place = ahead.pop(0)
            for found in self._later(place, seen):
                places.append(found)
                seen.add(found.cluster)
                if found.state == "copy":
                    ahead.append(found)
        return places

    def _earlier(self, hop: Hop, position: int) -> Place:
        state: PlaceState = "copy" if position else "origin"
        if hop.topic is None or hop.partition is None or hop.offset is None:
            return Place(hop.alias, "", -1, None, state, reason="only the path was kept")
        place = Place(hop.alias, hop.topic, hop.partition, hop.offset, state)
        try:
            message = self._read(hop.alias, hop.topic, hop.partition, hop.offset)
        except KeyError:
            return _with(place, "unreachable", "the topology has no such cluster any more")
        except ReplicatorError as error:
            return _with(place, "unreachable", error.message)
        if message is None:
            return _with(place, "missing", "not there any more")
        return Place(
            hop.alias, hop.topic, hop.partition, hop.offset, state, timestamp_ms=_timestamp(message)
        )

    def _later(self, place: Place, seen: set[str]) -> list[Place]:
        """The copies that the flows out of a place's cluster made of it."""
        found: list[Place] = []
        for target in {
            str(flow.target) for flow in self._plan.flows if flow.source == place.cluster
        }:
            if target in seen:
                continue
            paths = translation_paths(
                self._plan, place.cluster, target, place.topic, place.partition
            )
            for path in paths:
                found.extend(
                    self._copy(place, path, component.onward)
                    for component in path.components
                    if component.back is None and component.onward is not None
                )
        return found

    def _copy(self, place: Place, path: TranslationPath, copied: ReplicatedPartition) -> Place:
        copy = Place(
            path.target, copied.target_topic, copied.partition, None, "missing", copied.flow
        )
        if place.offset is None:
            return copy
        component = Component(path.source, None, copied)
        alone = TranslationPath(
            path.source, path.target, path.topic, path.target_topic, path.partition, (component,)
        )
        try:
            self._translator.refresh([alone])
            answer = self._translator.cross(alone, place.offset)
            if answer.offset is None:
                return _with(copy, "missing", answer.reason)
            message = self._read(path.target, copied.target_topic, copied.partition, answer.offset)
            mark = CopyMark(copied.source.alias, copied.topic, copied.partition)
            said = None if message is None else mark.source_offset(_headers(message))
            if (
                said == UNMARKED
                and self._translator.counts(copied)
                and self._counted(copied, answer.offset) == place.offset
            ):
                said = place.offset
        except ReplicatorError as error:
            return _with(copy, "unreachable", error.message)
        if message is None or said != place.offset:
            return _with(copy, "missing", answer.reason or "not copied yet, dropped, or compacted")
        return Place(
            cluster=path.target,
            topic=copied.target_topic,
            partition=copied.partition,
            offset=answer.offset,
            state="copy",
            flow=copied.flow,
            timestamp_ms=_timestamp(message),
            copied_by_ms=self._translator.noted_by(copied, place.offset),
        )

    def _counted_origin(
        self, cluster: str, topic: str, partition: int, offset: int
    ) -> tuple[Place, Hop] | None:
        """Where a record that says nothing of itself was copied from in a whole batch."""
        for source in {str(flow.source) for flow in self._plan.flows if flow.target == cluster}:
            for path in translation_paths(self._plan, cluster, source, topic, partition):
                for component in path.components:
                    copied = component.back
                    if copied is None or component.onward is not None:
                        continue
                    if not self._translator.counts(copied):
                        continue
                    found = self._counted(copied, offset)
                    if found is not None:
                        hop = Hop(source, copied.topic, partition, found)
                        return self._earlier(hop, 0), hop
        return None

    def _counted(self, copied: ReplicatedPartition, target: int) -> int | None:
        """The source offset of the copy at a target offset, where counting tells that it is one."""
        source_alias, target_alias = str(copied.source.alias), str(copied.target.alias)
        back = TranslationPath(
            target_alias, source_alias, copied.target_topic, copied.topic, copied.partition,
            (Component(source_alias, copied, None),),
        )  # fmt: skip
        onward = TranslationPath(
            source_alias, target_alias, copied.topic, copied.target_topic, copied.partition,
            (Component(source_alias, None, copied),),
        )  # fmt: skip
        self._translator.refresh([back, onward])
        found = self._translator.cross(back, target)
        if found.offset is None or found.grade != "exact":
            return None
        again = self._translator.cross(onward, found.offset)
        same = again.grade == "exact" and again.offset == target
        return found.offset if same else None

    def _copied_by(self, hop: Hop, cluster: str) -> int | None:
        """When the index first knew of a record at or after this one."""
        if hop.topic is None or hop.partition is None or hop.offset is None:
            return None
        for path in translation_paths(self._plan, hop.alias, cluster, hop.topic, hop.partition):
            for component in path.components:
                if component.back is None and component.onward is not None:
                    try:
                        self._translator.refresh([path])
                    except ReplicatorError:
                        return None
                    return self._translator.noted_by(component.onward, hop.offset)
        return None

    def _read(self, cluster: str, topic: str, partition: int, offset: int) -> Message | None:
        return self._translator.probe(self._plan.cluster(cluster)).record(topic, partition, offset)


def _with(place: Place, state: PlaceState, reason: str) -> Place:
    return Place(
        place.cluster, place.topic, place.partition, place.offset, state, place.flow, reason=reason
    )


def _headers(message: Message) -> Headers | None:
    try:
        return cast("Headers | None", message.headers())
    except SystemError:  # a header name that is no text; then none of them can be read
        return None


def _timestamp(message: Message) -> int | None:
    kind, value = message.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE else value
