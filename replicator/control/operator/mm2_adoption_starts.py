"""Where each partition starts that is taken over from MirrorMaker 2, with what is worth knowing of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replicator.control.reconcile.topic_selection import SelectedTopic
from replicator.errors import RefusedError, ReplicatorError
from replicator.identifiers import TopicPartition
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.mm2.topics.adopt import ConnectorProgress
from replicator.topology.plan import FlowPlan

Bounds = tuple[int, int]
"""First offset of a log, and the next one to be written."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where one source partition will start.

    ``last_copied`` is MirrorMaker 2's last stored source offset; None where it stored none, and then
    the flow's ``startFrom`` decides when a worker starts. ``left`` counts source offsets still to be
    copied, None where that is not known yet.
    """

    link: str
    topic: str
    partition: int
    target: str
    topic_id: str
    last_copied: int | None
    left: int | None
    note: str

    @property
    def offset(self) -> int | None:
        """The first source offset to be copied; None where the flow's policy decides."""
        return None if self.last_copied is None else self.last_copied + 1

    def as_json(self) -> dict[str, object]:
        """The line under the field names of the contract."""
        return {
            "link": self.link,
            "topic": self.topic,
            "partition": self.partition,
            "targetTopic": self.target,
            "lastCopied": self.last_copied,
            "startsAt": self.offset,
            "recordsLeft": self.left,
            "note": self.note,
        }


def find_starts(
    wanted: Sequence[SelectedTopic],
    progress: ConnectorProgress,
    source: ClusterAdmin,
    target: ClusterAdmin,
    targets: Mapping[str, int],
) -> tuple[Start, ...]:
    """One line for every partition that the flow copies; blocking.

    Raises:
        RefusedError: MirrorMaker 2 copied records of a source transaction that is still open.
        ClusterError: a cluster does not answer, or does not know the ends of a log.
    """
    described = source.describe_topics([one.topic for one in wanted])
    places = [
        (one, number)
        for one in wanted
        if one.problem is None and one.topic in described
        for number in range(described[one.topic].partitions)
    ]
    keys = [(one.topic, number) for one, number in places]
    low = source.offsets(keys, "earliest", isolation="read_uncommitted")
    high = source.offsets(keys, "latest", isolation="read_uncommitted")
    _refuse_open_transactions(progress, source.offsets(keys, "latest"), high)
    copies = target.offsets(
        [(one.target, number) for one, number in places if number < targets.get(one.target, 0)],
        "latest",
        isolation="read_uncommitted",
    )
    found: list[Start] = []
    for one, number in places:
        key = (one.topic, number)
        bounds = (_known(low[key]), _known(high[key]))
        held = copies.get((one.target, number), 0)
        last = progress.last_copied.get(key)
        found.append(
            Start(
                link=str(one.flow.link),
                topic=one.topic,
                partition=number,
                target=one.target,
                topic_id=described[one.topic].topic_id,
                last_copied=last,
                left=_left(last, bounds, one.flow),
                note=_note(
                    key, last, bounds, one.flow, progress, held=isinstance(held, int) and held > 0
                ),
            )
        )
    return tuple(found)


def _refuse_open_transactions(
    progress: ConnectorProgress,
    committed: Mapping[TopicPartition, int | ReplicatorError],
    ends: Mapping[TopicPartition, int | ReplicatorError],
) -> None:
    """A lane reads committed records only: to it, a position beyond them would be beyond the log."""
    for key, end in ends.items():
        start = progress.last_copied.get(key, -1) + 1
        if _known(committed[key]) < start <= _known(end):
            raise RefusedError(
                f"MirrorMaker 2 copied records of a transaction of the source that is still open "
                f"in {key[0]}/{key[1]}",
                remedy="Wait until it has ended, then try again.",
            )


def _known(answer: int | ReplicatorError) -> int:
    if isinstance(answer, ReplicatorError):
        raise answer
    return answer


def _left(last: int | None, bounds: tuple[int, int], flow: FlowPlan) -> int | None:
    low, high = bounds
    if last is not None:
        return max(0, high - max(last + 1, low))
    kind = flow.policy.start_from.kind
    return {"earliest": max(0, high - low), "latest": 0}.get(kind)


def _note(
    key: TopicPartition,
    last: int | None,
    bounds: tuple[int, int],
    flow: FlowPlan,
    progress: ConnectorProgress,
    *,
    held: bool,
) -> str:
    low, high = bounds
    if last is None:
        start = {"earliest": "from the beginning", "latest": "from the end"}.get(
            flow.policy.start_from.kind, "from the time that startFrom names"
        )
        again = ""
        if held and flow.policy.start_from.kind == "earliest":
            again = "; the target holds records that will be copied again"
        elif held or flow.policy.start_from.kind != "earliest":
            again = "; what was written before a worker starts may be missing"
        return f"MirrorMaker 2 stored nothing: {start}, by startFrom{again}"
    if last + 1 < low:
        return f"the source has lost offsets {last + 1} to {low - 1}: the partition will stop there"
    if last + 1 > high:
        return f"the source ends at {high}, below what was copied: the partition will stop"
    if key in progress.unconfirmed:
        return "several connectors stored offsets; the lowest counts"
    return ""
