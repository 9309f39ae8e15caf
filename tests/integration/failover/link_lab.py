"""A link for tests of role changes: applied on real clusters, with records and no worker."""

import json
import shlex
import subprocess
import sys
import time
from dataclasses import replace

from producing import produce
from topology_files import active_passive, write_topology

from replicator.clock import SystemClock
from replicator.control.records.role_records import RoleRecord
from replicator.control.store.read import read_control
from replicator.failover.clusters.link_clusters import LinkClusters
from replicator.failover.clusters.reverse_flow import place_starts, prepare_reverse_flow
from replicator.failover.rules.request import TransitionRequest
from replicator.failover.run.runner import run_transition
from replicator.identifiers import control_topic
from replicator.testing.kit.ports import free_ports
from replicator.topology.file.load import require_plan


class Link:
    """The link ``dr`` from east to west over one topic; positions are placed by hand."""

    def __init__(self, directory, name, east, west, **fields):
        self.east, self.west, self.name = east, west, name
        self.topic = f"{name}.orders"
        self.directory = directory
        self.file = directory / "topology.yaml"
        link = active_passive([f"{name}.*"], **fields)
        write_topology(self.file, name, (east, west), [link], defaults={"discoveryInterval": "1s"})
        self.plan = require_plan(self.file)
        self.asked, self.events = [], []
        self.before_answer = lambda: None

    def apply(self, copied=None, *, partitions=2, records=0):
        """The topic on east with records, the flow applied, and progress at ``copied`` by partition."""
        self.east.create_topic(self.topic, partitions=partitions)
        for number in range(partitions):
            self.write(self.east, records, partition=number)
        with self.clusters() as clusters:
            wrong = prepare_reverse_flow(clusters, clusters.old, clock=SystemClock())
            assert not wrong, wrong
            starts = {(self.topic, number): offset for number, offset in (copied or {}).items()}
            place_starts(clusters, clusters.old, starts, clock=SystemClock(), check=lambda: None)

    def clusters(self, old="east", new="west"):
        link = self.plan.link("dr")
        return LinkClusters(self.plan, link, self.plan.cluster(old), self.plan.cluster(new))

    def write(self, cluster, count, *, partition=0, **settings):
        values = (f"v-{number}".encode() for number in range(count))
        produce(cluster, self.topic, values, partition=partition, settings=settings)

    def store(self, cluster, *records):
        """Puts records into a cluster's control topic."""
        encoded = (dict(zip(("key", "value"), each.encode(), strict=True)) for each in records)
        produce(cluster, control_topic(self.name), encoded, partition=0)

    def role(self, active, state, epoch):
        """A role on record on both clusters."""
        for cluster in (self.east, self.west):
            self.role_on(cluster, active, state, epoch)

    def role_on(self, cluster, active, state, epoch):
        """A role on record on one cluster."""
        now = round(time.time() * 1000)
        record = RoleRecord(
            link="dr", epoch=epoch, active=active, state=state, since=now, by="test"
        )
        self.store(cluster, record)

    def control(self, cluster):
        plan = self.plan.cluster(cluster.name)
        return read_control(self.name, plan, client_id="test", past_open_transactions=True)

    def without(self, alias):
        """The plan with an address for one cluster at which nobody answers."""
        gone = [
            replace(one, bootstrap_servers=(f"127.0.0.1:{free_ports(1)[0]}",))
            if one.alias == alias else one
            for one in self.plan.clusters
        ]  # fmt: skip
        return replace(self.plan, clusters=tuple(gone))

    def run(self, kind, *, answers=(), **fields):
        """One transition, as an operator runs it; yes is said to questions beyond ``answers``."""
        said = list(answers)

        def answer(question):
            self.asked.append(question)
            self.before_answer()
            return said.pop(0) if said else True

        fields.setdefault("unreachable_after_seconds", 20.0)
        request = TransitionRequest(kind=kind, link="dr", by="ann", **fields)
        return run_transition(
            self.plan, request, clock=SystemClock(), on_step=self.events.append, answer=answer
        )


def typed(link, command, *, code=0, file=None):
    """A command as a runbook or a remedy has it, in a shell of its own; returns what it printed."""
    name, *rest = shlex.split(command)
    assert name == "replicator"
    ran = subprocess.run(
        [sys.executable, "-m", name, *rest, "-f", file or link.file],
        check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ran.returncode == code, ran
    assert "Traceback" not in ran.stderr
    return f"{ran.stdout}\n{ran.stderr}"


def failed(report):
    """Checks that refused a transition, by name."""
    return {check.check: check for check in report.checks if not check.ok}


def evidence(report, step):
    """What a step left."""
    return json.loads(json.dumps(next(one.evidence for one in report.steps if one.step == step)))
