"""Rules about who may write: epochs, roles, and what was promised before a change; pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from replicator.testing.checker.anomalies import Anomaly, Findings
from replicator.testing.checker.ledger import Ledger, Write
from replicator.testing.checker.record_rules import Missing, origin


@dataclass(frozen=True, slots=True)
class _Link:
    """A link with roles, as its role records show it."""

    name: str
    clusters: frozenset[str]
    topics: frozenset[str]  # empty is all
    active: dict[int, str]  # by epoch
    begins: dict[int, float]  # when an epoch was first seen

    def covers(self, write: Write) -> bool:
        topic_counts = not self.topics or write.sent.topic in self.topics
        return topic_counts and write.sent.cluster in self.clusters

    def epoch_of(self, write: Write) -> int:
        """The epoch the writer said, else the one in force when it wrote."""
        if write.sent.epoch is not None:
            return write.sent.epoch
        begun = [epoch for epoch, at in self.begins.items() if at <= write.sent.at]
        return max(begun, default=min(self.begins))


def judge_roles(ledger: Ledger, findings: Findings) -> None:
    """Epochs only grow, one active side per epoch, and no epoch writes after its end."""
    _judge_regression(ledger, findings)
    for link in _links(ledger, findings):
        writes = [w for w in ledger.writes.values() if w.outcome == "ok" and link.covers(w)]
        epochs = {write.sent.id: link.epoch_of(write) for write in writes}
        _judge_writes(link, writes, epochs, findings)
        _judge_late_copies(link, ledger, epochs, findings)


def judge_promises(ledger: Ledger, missing: Iterable[Missing], findings: Findings) -> None:
    """Reports the unseen tail, and holds outcomes against promises.

    A tail that a ``rpo-records`` promise covers is tolerated; one larger than promised is a false
    promise.
    """
    tails = list(missing)
    links = {link.name: link for link in _links(ledger, Findings())}
    measured: dict[tuple[str, str], float] = {}
    for fact in ledger.measured:
        place = (fact.subject, fact.kind)
        measured[place] = max(fact.value, measured.get(place, fact.value))
    covered: set[int] = set()
    for promise in ledger.promised:
        if promise.kind == "reread-records":
            continue  # held against each group's own rewinds
        actual = measured.get((promise.subject, promise.kind))
        if promise.kind == "rpo-records":
            link = links.get(promise.subject)
            own = [n for n, tail in enumerate(tails) if link is None or link.covers(tail.write)]
            covered.update(own)
            actual = max(float(len(own)), actual or 0.0)
        if actual is not None and actual > promise.value:
            findings.add(
                Anomaly.FALSE_PROMISE,
                f"{promise.subject}: {promise.kind} {actual:g}, {promise.value:g} promised",
            )
    for number, tail in enumerate(tails):
        findings.add(
            Anomaly.UNSEEN_TAIL,
            f"{origin(tail.write)}: not yet on {tail.target}",
            tolerated=number in covered,
        )


def _judge_regression(ledger: Ledger, findings: Findings) -> None:
    latest: dict[tuple[str, str], int] = {}
    for role in ledger.roles:
        place = (role.link, role.seen_on)
        if role.epoch < latest.get(place, role.epoch):
            findings.add(
                Anomaly.EPOCH_REGRESSION,
                f"{role.link} on {role.seen_on}: {role.epoch} after {latest[place]}",
            )
        latest[place] = max(role.epoch, latest.get(place, role.epoch))


def _links(ledger: Ledger, findings: Findings) -> list[_Link]:
    links = []
    for name in dict.fromkeys(role.link for role in ledger.roles):
        own = [role for role in ledger.roles if role.link == name]
        active: dict[int, str] = {}
        begins: dict[int, float] = {}
        for role in own:
            if active.setdefault(role.epoch, role.active) != role.active:
                findings.add(
                    Anomaly.SPLIT_BRAIN,
                    f"{name}: epoch {role.epoch} is claimed by {active[role.epoch]} and {role.active}",
                )
            begins[role.epoch] = min(role.at, begins.get(role.epoch, role.at))
        clusters = frozenset({role.active for role in own} | {role.seen_on for role in own})
        topics = frozenset(topic for role in own for topic in role.topics)
        links.append(_Link(name, clusters, topics, active, begins))
    return links


def _judge_writes(
    link: _Link, writes: list[Write], epochs: dict[str, int], findings: Findings
) -> None:
    first_done: dict[int, float] = {}  # an epoch's first acknowledged write on its active side
    for write in writes:
        epoch = epochs[write.sent.id]
        if write.completed_at is not None and link.active.get(epoch) == write.sent.cluster:
            first_done[epoch] = min(write.completed_at, first_done.get(epoch, write.completed_at))
    for write in writes:
        epoch = epochs[write.sent.id]
        active = link.active.get(epoch, write.sent.cluster)
        if active != write.sent.cluster:
            findings.add(
                Anomaly.SPLIT_BRAIN, f"{link.name}: {origin(write)} in epoch {epoch} of {active}"
            )
            continue
        if any(later > epoch and at < write.sent.at for later, at in first_done.items()):
            findings.add(
                Anomaly.LATE_ZOMBIE, f"{link.name}: {origin(write)} under fenced epoch {epoch}"
            )


def _judge_late_copies(
    link: _Link, ledger: Ledger, epochs: dict[str, int], findings: Findings
) -> None:
    """Copies out of a fenced side that stand behind the new side's own writes.

    Once records of a still newer epoch of another side arrive, copying is rightful again.
    """
    for (cluster, topic, _), records in ledger.seen.items():
        if cluster not in link.clusters or (link.topics and topic not in link.topics):
            continue
        newest = min(link.active)
        for seen in records:
            epoch = epochs.get(seen.id)
            if epoch is None:
                continue
            write = ledger.writes[seen.id]
            if epoch >= newest:
                newest = epoch
            elif (
                write.sent.cluster != cluster
                and link.active.get(newest) == cluster
                and seen.id not in ledger.salvaged
            ):
                findings.add(
                    Anomaly.LATE_ZOMBIE, f"{link.name}: {origin(write)} copied after epoch {newest}"
                )
