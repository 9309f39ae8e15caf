"""A replicated set-up under test: clusters, links, workers, writers, and the verdict at the end.

The verdict is the history checker's, over what the writers recorded and what stands in the clusters.
The product's own word (status) is compared with it, never believed instead of it.
"""

import contextlib
import itertools
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from acceptance_worker import WorkerProcess
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec
from topology_files import write_topology

from replicator.testing import (
    Anomaly,
    GroupReader,
    LocalCluster,
    Poller,
    Recorder,
    Report,
    Writer,
    check,
    scan,
    wait_until,
)
from replicator.testing.checker.anomalies import Guarantee
from replicator.testing.checker.history import Event
from replicator.testing.checker.routes import Naming, identity
from replicator.testing.faults.protocol_proxy import ProtocolProxy
from replicator.testing.kit.waiting import NotInTimeError

CATCH_UP_SECONDS = 90.0
SCAN_SECONDS = 60.0
PARTITIONS = 4
NOT_YET_THERE = {Anomaly.LOST, Anomaly.UNSEEN_TAIL}
"""What a history shows while lanes still catch up; anything else never heals."""


class Scene:
    """One topology on some clusters, with everything a test does to it."""

    def __init__(self, *, name: str, directory: Path, engine: str | None = None) -> None:
        self.name = name
        self.topic = f"t.{name}"
        self.workers: list[WorkerProcess] = []
        self.guarantee: Guarantee = "exactly-once"
        self.naming: Naming = identity
        self._directory = directory
        self._engine = {"engine": engine} if engine else {}
        self._proxies: dict[str, ProtocolProxy] = {}
        self._clusters: dict[str, LocalCluster] = {}
        self._links: list[dict[str, Any]] = []
        self._recorder = Recorder()
        self._writers: list[Writer] = []
        self._readers: list[GroupReader] = []
        self._pollers: list[Poller] = []
        self._numbers = itertools.count(1)
        self._link_numbers = itertools.count()

    # -- set-up -------------------------------------------------------------------------------

    def clusters(self, *clusters: LocalCluster, topic_on: Iterable[LocalCluster] = ()) -> None:
        """Names the clusters; the topic is created where its writers are."""
        self._clusters = {cluster.name: cluster for cluster in clusters}
        for cluster in topic_on:
            cluster.create_topic(self.topic, partitions=PARTITIONS)

    def link(
        self, shape: str, *, flows: Iterable[str], relay: bool = False, **fields: object
    ) -> None:
        """Adds a link; ``flows`` says in words of the checker what it must do."""
        name = f"link-{next(self._link_numbers)}"
        topics = {"include": [self.topic]}
        self._links.append(
            {"name": name, "shape": shape, "topics": topics, **self._engine, **fields}
        )
        self._recorder.expect(flows, relay=relay)

    def active_passive(self, source: LocalCluster, target: LocalCluster, **fields: object) -> None:
        """The plain case: one topic on one cluster, copied to another under the same name."""
        self.clusters(source, target, topic_on=[source])
        flow = f"{source.name}->{target.name}"
        self.link("active-passive", active=source.name, passive=target.name, flows=[flow], **fields)

    def needs_headers(self) -> None:
        """Leaves a test out where every flow is to copy whole batches: ``validate`` refuses that for its shape."""
        if self._engine.get("engine") == "batches":
            pytest.skip(
                "records could come back over a third cluster, which no whole batch can tell"
            )

    def mesh(self, *clusters: LocalCluster) -> None:
        """One topic of one name on every cluster, copied from each to each other one."""
        self.clusters(*clusters, topic_on=clusters)
        names = [cluster.name for cluster in clusters]
        flows = [f"{one}->{other}" for one in names for other in names if one != other]
        self.link("active-active", clusters=names, naming="identity", flows=flows)

    def topology(self) -> Path:
        """The topology file (YAML reads JSON)."""
        entries = {name: cluster.topology_entry() for name, cluster in self._clusters.items()}
        for name, proxy in self._proxies.items():
            entries[name]["bootstrapServers"] = proxy.bootstrap_servers
        return write_topology(
            self._directory / "topology.yaml", self.name, entries, self._links,
            defaults={"discoveryInterval": "1s"},
        )  # fmt: skip

    def behind(self, cluster: LocalCluster, proxy: ProtocolProxy) -> None:
        """What reads the topology file reaches the cluster through a proxy; what the test does goes past it."""
        self._proxies[cluster.name] = proxy

    def drop_links(self) -> None:
        """Takes all links out of the file that is written next; later ones get other names."""
        self._links.clear()

    def edit_link(self, **fields: object) -> None:
        """Changes fields of the first link in the file that the workers follow."""
        self._links[0].update(fields)
        self.topology()

    def worker(self, *options: str, release: Path | None = None) -> WorkerProcess:
        """Starts one more worker, of another release where its folder is given; returns at once."""
        log = self._directory / f"worker-{next(self._numbers)}.log"
        options = ("--processes", "1", *options)
        worker = WorkerProcess(self.topology(), log=log, options=options, release=release)
        self.workers.append(worker)
        return worker

    def writer(self, cluster: LocalCluster, *, rate: float = 300.0, **options: Any) -> Writer:
        """Starts a writer of the topic."""
        writer = Writer(
            cluster, [self.topic], history=self._recorder, rate_per_second=rate,
            seed=len(self._writers), **options,
        )  # fmt: skip
        self._writers.append(writer)
        writer.start()
        return writer

    def reader(self, cluster: LocalCluster, group: str, **options: Any) -> GroupReader:
        """Starts a member of a consumer group; where it has no position it begins at the start."""
        reader = GroupReader(cluster, [self.topic], group=group, history=self._recorder, **options)
        self._readers.append(reader)
        return reader.start()

    def poller(self, cluster: LocalCluster) -> Poller:
        """A reader of the topic in no group; start it, or poll by it in one other thread."""
        poller = Poller(cluster, [self.topic], history=self._recorder)
        self._pollers.append(poller)
        return poller

    def record(self, *events: Event) -> None:
        """Adds facts that the test knows to the history."""
        self._recorder.record(*events)

    @property
    def directory(self) -> Path:
        """Where the test keeps its files."""
        return self._directory

    def expect(self, *flows: str, relay: bool = False) -> None:
        """From now on these flows must have copied everything as well."""
        self._recorder.expect(flows, relay=relay)

    # -- while it runs ------------------------------------------------------------------------

    def written(self, more: int, *, timeout_seconds: float = CATCH_UP_SECONDS) -> None:
        """Waits until the writers together have ``more`` acknowledged records than now."""
        wanted = self._acked() + more
        wait_until(
            lambda: self._acked() >= wanted,
            timeout_seconds=timeout_seconds,
            describe=lambda: f"{wanted} acknowledged records, there are {self._acked()}",
        )

    def _acked(self) -> int:
        return sum(writer.acked for writer in self._writers)

    def copying(self, flow: str) -> None:
        """Waits until records of the flow arrive that were written after this call."""
        self.past(flow, self.source_ends(flow), timeout_seconds=CATCH_UP_SECONDS)

    def source_ends(self, flow: str) -> dict[int, int]:
        """Where each partition of the flow's source ends now."""
        return self.ends(self._clusters[flow.partition("->")[0]])

    def past(self, flow: str, ends: dict[int, int], *, timeout_seconds: float) -> float:
        """Waits until every partition of the flow has stored progress past the given ends.

        Returns the seconds it took.
        """
        began = time.monotonic()
        behind: dict[int, int] = {}

        def all_past() -> bool:
            positions = self.positions(flow)
            behind.clear()
            behind.update({p: positions.get(p, 0) for p, end in ends.items()
                           if positions.get(p, 0) <= end})  # fmt: skip
            return not behind

        wait_until(
            all_past,
            timeout_seconds=timeout_seconds,
            describe=lambda: (
                f"progress of {flow} past {ends}, but there are {behind}{self.standing()}"
            ),
        )
        return time.monotonic() - began

    def standing(self) -> str:
        """What each worker does at this moment."""
        return "".join(f"\n{worker.standing()}" for worker in self.workers)

    def positions(self, flow: str) -> dict[int, int]:
        """Stored progress by source partition."""
        topics = self.asked().status()[flow]["topics"]
        return {
            each["partition"]: each["position"] or 0
            for topic in topics if topic["source"] == self.topic for each in topic["partitions"]
        }  # fmt: skip

    def lanes(self, worker: WorkerProcess, flow: str) -> set[int]:
        """Lanes of a flow that the workers' group gave to a worker, as its coordinator has it."""
        source, _, target = flow.partition("->")
        group = f"__replicator.{self.name}.{source}"
        admin = self._clusters[target].admin()
        asked = admin.describe_consumer_groups([group], request_timeout=SCAN_SECONDS)
        try:
            members = asked[group].result().members
        except KafkaException:
            return set()  # a group nobody has joined yet has no coordinator that knows it
        return {
            place.partition
            for member in members
            if f"-{worker.pid}-" in member.client_id
            for place in member.assignment.topic_partitions
        }

    def asked(self) -> WorkerProcess:
        """A worker that can answer."""
        return next(worker for worker in reversed(self.workers) if worker.answering)

    def ends(self, cluster: LocalCluster, topic: str | None = None) -> dict[int, int]:
        """End offsets by partition, as a reader that takes everything sees them."""
        return end_offsets(cluster, topic or self.topic)

    def lag(self) -> int:
        """What status says is still to be copied, over all flows; of a second ago, so not of what was just written."""
        lags = [flow["lagRecords"] for flow in self.asked().status().values()]
        return -1 if None in lags else sum(lags)

    def survives_killed_brokers(self, writer: Writer, flow: str) -> None:
        """Kills one side, the other and both under load, and brings them back; judges at the end."""
        east, west = (self._clusters[name] for name in flow.split("->"))
        for broken in ([west], [east], [east, west]):
            for cluster in broken:
                cluster.kill()
            for cluster in broken:
                cluster.restart()
            writer.wait_acked(500, timeout_seconds=60.0)
            self.copying(flow)
        self.settled()

    # -- the verdict --------------------------------------------------------------------------

    def stop_writing(self) -> None:
        """Stops the writers; every outcome is known afterwards, or unknown for good."""
        for writer in self._writers:
            writer.stop()

    def settled(
        self, *, status_agrees: bool = True, timeout_seconds: float = CATCH_UP_SECONDS
    ) -> Report:
        """Stops writing, waits until everything is where it belongs, and judges all of it.

        Fails as soon as something is found that waiting cannot mend.
        """
        self.stop_writing()
        report = self._judged_when(lambda report: not _still_missing(report), timeout_seconds)
        assert report.clean, f"{report.paragraph()}{self.standing()}"
        if status_agrees:
            wait_until(
                lambda: self.lag() == 0,
                timeout_seconds=timeout_seconds,
                describe=lambda: f"status to say that nothing lags: {self.asked().status()}",
            )
        report = self.judged()
        assert report.clean, report.paragraph()
        assert report.counts["acknowledged"] > 100, report.paragraph()
        for worker in self.workers:
            assert not worker.surprises()
        return report

    def _judged_when(self, good: Callable[[Report], bool], timeout_seconds: float) -> Report:
        """The verdict once it is good; the last one that was not, when it never is in time."""
        last: list[Report] = []

        def judged() -> bool:
            last[:] = [self.judged()]
            return good(last[0])

        with contextlib.suppress(NotInTimeError):
            wait_until(
                judged,
                timeout_seconds=timeout_seconds,
                describe="a good verdict",
                interval_seconds=0.5,
            )
        return last[0]

    def judged(self) -> Report:
        """The checker's verdict over what stands in the clusters now."""
        return check(self.history(), guarantee=self.guarantee, naming=self.naming)

    def history(self) -> list[Event]:
        """Everything that was written and everything that stands in the clusters now."""
        looked = Recorder()
        for cluster in self._clusters.values():
            scan(cluster, self._topics_on(cluster), history=looked, timeout_seconds=SCAN_SECONDS)
        return self._recorder.events() + looked.events()

    def _topics_on(self, cluster: LocalCluster) -> list[str]:
        """The topic, there or not, and every copy of it under another name."""
        found = cluster.admin().list_topics(timeout=SCAN_SECONDS).topics
        return [self.topic, *(name for name in found if name.endswith(f".{self.topic}"))]

    # -- the end ------------------------------------------------------------------------------

    def close(self, *, show_logs: bool) -> None:
        """Ends writers and workers; shows logs of a failed test."""
        try:
            for worker in self.workers:
                worker.end()
        finally:
            for worker in self.workers:
                if show_logs:
                    print(worker.log_tail(120))  # noqa: T201  pytest shows it with the failure
            self.stop_writing()
            for reader in (*self._readers, *self._pollers):
                reader.stop()


def _still_missing(report: Report) -> bool:
    """Whether all that is wrong is that something has not arrived."""
    wrong = {finding.anomaly for finding in report.findings if not finding.tolerated}
    return bool(wrong) and wrong <= NOT_YET_THERE


def end_offsets(cluster: LocalCluster, topic: str) -> dict[int, int]:
    """End offsets by partition, transaction markers included, asked behind any proxy."""
    admin = cluster.admin()
    partitions = admin.list_topics(topic, timeout=SCAN_SECONDS).topics[topic].partitions
    asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in partitions}

    def ends() -> dict[int, int]:
        answers = admin.list_offsets(asked, request_timeout=SCAN_SECONDS)
        with contextlib.suppress(KafkaException):  # leaders of a new topic are not settled at once
            return {place.partition: answer.result().offset for place, answer in answers.items()}
        return {}

    return wait_until(ends, timeout_seconds=SCAN_SECONDS, describe=f"end offsets of {topic}")
