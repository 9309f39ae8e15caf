"""The partitions of a running lane: they come, go, stop, and come back.

Each change commits first, so that whatever happens next starts from what is stored. Nothing is read
of a partition before ``decide_start`` has said where, and nothing of one that it stopped.
"""

from collections.abc import Callable, Iterable, Mapping

from replicator.dataplane.lane.seek import read_from
from replicator.dataplane.lane.session_clients import LaneClients
from replicator.dataplane.lane.start_position import StartDecision
from replicator.dataplane.progress.partition_state import PartitionState, partition_states
from replicator.dataplane.transport.messages import LogLine, LostRange
from replicator.dataplane.transport.spec import LaneSpec, PartitionWork
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import TopicPartition
from replicator.kafka.client import ClientPartition


class LanePartitions:
    """Used by the lane's thread only; lives as long as one session.

    Attributes:
        routes: every partition the lane was told to work on, by topic and partition.
    """

    def __init__(
        self,
        spec: LaneSpec,
        *,
        clients: LaneClients,
        checkpoints: Mapping[TopicPartition, Checkpoint],
        post: Callable[[LostRange | LogLine], None],
    ) -> None:
        self.routes: dict[TopicPartition, PartitionState] = {}
        self._spec = spec
        self._clients = clients
        self._checkpoints = dict(checkpoints)
        self._post = post

    def follow(self, spec: LaneSpec) -> None:
        """Goes on with another list of work; only partitions that differ are touched."""
        self._spec = spec
        wanted = {(work.topic, work.partition): work for work in spec.work}
        self._remove([key for key in self.routes if key not in wanted])
        again: set[PartitionState] = set()
        for key, route in self.routes.items():
            old, new = route.work, wanted[key]
            route.work = new
            if (old.topic_id, old.accept_gap) != (new.topic_id, new.accept_gap):
                again.add(route)
        if again:
            self._suspend(again)
            self.examine(again)
        self._add([work for key, work in wanted.items() if key not in self.routes])

    def recheck(self) -> None:
        """Asks again about partitions for which the source had no answer."""
        suspects = {route for route in self.routes.values() if route.suspect}
        if suspects:
            self.examine(suspects)

    def examine(self, routes: set[PartitionState]) -> None:
        """Decides the start of each route from what is stored and what the source says now."""
        stored = dict(self._checkpoints)
        for route in routes:
            if route.position >= 0:
                stored[route.key] = route.checkpoint(at_ms=route.committed_at_ms)
        start: list[PartitionState] = []
        decisions = self._clients.decide(self._spec, routes, stored)
        self._clients.learn_leaders({route.topic for route in decisions if not route.problem})
        for route, decision in decisions.items():
            self._tell(route, decision)
            if decision.store:
                self._clients.session.store_soon(route)
            if decision.lost is not None and self._clients.session.indexing is not None:
                self._clients.session.indexing.restart(route)
            if decision.problem:
                continue
            if self._clients.session.reads_another_topic(route):
                route.suspect = True  # admin and consumer do not see the same topic yet: ask again
            else:
                start.append(route)
        if start:
            read_from(self._clients.consumer, start)

    def _add(self, work: list[PartitionWork]) -> None:
        if not work:
            return
        fresh = set()
        for item in work:
            route = PartitionState(
                item,
                source_alias=self._spec.source.alias,
                provenance=self._spec.settings.provenance,
            )
            route.suspect = True  # until its start is decided
            self.routes[route.key] = route
            fresh.add(route)
        self._publish()
        self.examine(fresh)

    def _remove(self, keys: list[TopicPartition]) -> None:
        if not keys:
            return
        self._clients.session.commit()
        self._unassign(self.routes[key] for key in keys)
        for key in keys:
            route = self.routes.pop(key)
            if route.position >= 0:
                # Should it come back (resume), it goes on from here, not from the take-over.
                self._checkpoints[key] = route.checkpoint(at_ms=route.committed_at_ms)
        self._publish()

    def _suspend(self, routes: set[PartitionState]) -> None:
        self._clients.session.commit()
        self._unassign(routes)
        for route in routes:
            route.suspect = True

    def _unassign(self, routes: Iterable[PartitionState]) -> None:
        reading = [
            ClientPartition(route.topic, route.partition)
            for route in routes
            if not route.problem and not route.suspect and route.position >= 0
        ]
        if reading:
            self._clients.consumer.incremental_unassign(reading)

    def _publish(self) -> None:
        """The engine looks partitions up in the session's table, which stays the same object."""
        table = self._clients.session.table
        table.clear()
        table.update(partition_states(list(self.routes.values())))

    def _tell(self, route: PartitionState, decision: StartDecision) -> None:
        pair = self._spec.pair
        if decision.lost is not None:
            self._post(
                LostRange(
                    pair=pair,
                    link=self._spec.link,
                    topic=route.topic,
                    partition=route.partition,
                    lost_from=decision.lost[0],
                    lost_to=decision.lost[1],
                    detail=decision.detail,
                )
            )
        if decision.problem:
            fields = {
                "flow": pair,
                "link": self._spec.link,
                "topic": route.topic,
                "partition": str(route.partition),
                "problem": decision.problem,
                "detail": decision.detail,
            }
            self._post(LogLine("error", "partition stopped", fields))
