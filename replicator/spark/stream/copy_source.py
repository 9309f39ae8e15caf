"""A Structured Streaming source whose tasks copy: each micro-batch is a set of ranges.

Spark decides when and where a range runs. What is copied is decided by the checkpoints on the target,
as everywhere: a micro-batch that Spark repeats finds its ranges done. A row is what became of one range.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructType

from replicator.control.backfill.handover import read_control_past_open_transactions
from replicator.control.backfill.stream_partitions import copied_by_streams
from replicator.control.lanes.lane_specs import lane_settings
from replicator.control.lanes.layout import lane_in
from replicator.control.records.pair_records import BackfillRecord, TopicRecord
from replicator.control.roles.read import in_force
from replicator.control.store.state import ControlState
from replicator.dataplane.ranges.range_patience import Patience
from replicator.identifiers import TopicPartition
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.checkpoint_log import read_checkpoints
from replicator.spark.base.failures import task_errors
from replicator.spark.base.ranges import keyed_offsets, offsets_json
from replicator.spark.copy.bulk_plan import throttle_part, work_of
from replicator.spark.copy.task import CopyOrder, copy_order
from replicator.topology.file.load import require_plan
from replicator.topology.plan import FlowPlan, PairPlan, Plan, find_pair

FORMAT = "replicator-copy"
CLIENT_ID = "replicator-stream"
TIMEOUT_SECONDS = 30.0
PATIENCE = Patience(seconds=20.0, refused_seconds=5.0)
"""A micro-batch waits for its slowest range, and is run again by itself: so a range that stands still soon
fails it, which the driver says."""
SCHEMA = (
    "link string, topic string, partition int, start long, position long, records long, "
    "bytes long, problem string"
)

OffsetsJson = dict[str, dict[str, int]]


class CopySource(DataSource):
    """Options: ``topology`` (a file), ``flow``, ``run`` (that holds the partitions), ``tasks``."""

    @classmethod
    def name(cls) -> str:
        """What ``format`` takes."""
        return FORMAT

    def schema(self) -> str:
        """One row per range."""
        return SCHEMA

    def streamReader(self, schema: StructType) -> "CopyReader":  # noqa: ARG002, N802  Spark's name
        """The only way to run it."""
        return CopyReader(
            Path(self.options["topology"]), self.options["flow"], self.options["run"],
            tasks=int(self.options["tasks"]),
        )  # fmt: skip


class CopyPart(InputPartition):
    """One range."""

    def __init__(self, order: CopyOrder) -> None:
        super().__init__(order)
        self.order = order


@dataclass(frozen=True, slots=True)
class _Held:
    """A partition that the run holds."""

    flow: FlowPlan
    record: TopicRecord
    backfill: BackfillRecord


class CopyReader(DataSourceStreamReader):
    """Plans micro-batches on the driver; offsets are those of the source, by topic and partition."""

    def __init__(self, topology_file: Path, flow: str, run: str, *, tasks: int) -> None:
        self._file = topology_file
        self._flow = flow
        self._run = run
        self._tasks = tasks

    def initialOffset(self) -> OffsetsJson:  # noqa: N802  Spark's name
        """Where the checkpoints stand."""
        with task_errors():
            plan, pair = self._wanted()
            checkpoints = read_checkpoints(plan.topology, pair, client_id=CLIENT_ID)
            held = self._held(pair, read_control_past_open_transactions(plan, pair))
            return offsets_json(
                {key: checkpoints[key].offset for key in held if key in checkpoints}
            )

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Everything there is."""
        return ReadAllAvailable()

    def latestOffset(  # noqa: N802
        self,
        start: Mapping[str, Mapping[str, int]],
        limit: ReadLimit,  # noqa: ARG002
    ) -> OffsetsJson:
        """Where the source's logs end now; of partitions that are held and not paused."""
        with task_errors():
            plan, pair = self._wanted()
            control = read_control_past_open_transactions(plan, pair)
            moving = [
                key
                for key, one in self._held(pair, control).items()
                if not control.paused(one.flow.id, one.flow.link, *key)
            ]
            with ClusterAdmin(
                pair.source, client_id=CLIENT_ID, timeout_seconds=TIMEOUT_SECONDS
            ) as source:
                ends = source.known_offsets(moving, "latest")
            return offsets_json({**keyed_offsets(start), **ends})

    def partitions(
        self, start: Mapping[str, Mapping[str, int]], end: Mapping[str, Mapping[str, int]]
    ) -> Sequence[InputPartition]:
        """One task per partition that has something new."""
        with task_errors():
            plan, pair = self._wanted()
            control = read_control_past_open_transactions(plan, pair)
            starts, ends = keyed_offsets(start), keyed_offsets(end)
            held = self._held(pair, control)
            grown = {
                key: one for key, one in held.items() if ends.get(key, 0) > starts.get(key, -1)
            }
            parts = max(1, min(self._tasks, len(grown)))
            return [
                CopyPart(_order(plan, pair, one, control, key=key, end=ends[key], parts=parts))
                for key, one in grown.items()
            ]

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        """Runs in a task: the copying itself."""
        if not isinstance(partition, CopyPart):
            return  # Spark's own stand-in where nothing is to be read
        order = partition.order
        with task_errors():
            result = copy_order(order, patience=PATIENCE)
        yield (
            order.link, result.topic, result.partition, result.start, result.position,
            result.records, result.size, result.problem,
        )  # fmt: skip

    def _wanted(self) -> tuple[Plan, PairPlan]:
        plan = in_force(require_plan(self._file))
        return plan, find_pair(plan, self._flow)

    def _held(self, pair: PairPlan, control: ControlState) -> dict[TopicPartition, _Held]:
        flows = {str(flow.link): flow for flow in pair.flows}
        found: dict[TopicPartition, _Held] = {}
        for backfill in copied_by_streams(control, pair.source.alias):
            record = control.topic(backfill.source, backfill.link, backfill.topic)
            if (
                backfill.run != self._run
                or backfill.state != "seeding"
                or backfill.link not in flows
            ):
                continue
            if record is not None and backfill.partition < record.working_partitions:
                found[backfill.topic, backfill.partition] = _Held(
                    flows[backfill.link], record, backfill
                )
        return found


def _order(
    plan: Plan,
    pair: PairPlan,
    one: _Held,
    control: ControlState,
    *,
    key: TopicPartition,
    end: int,
    parts: int,
) -> CopyOrder:
    """The start is the checkpoint's; without one, where the stream took the partition."""
    layout = control.layout(pair.source.alias)
    block = layout.block(one.backfill.link) if layout is not None else None
    gap = control.gap(one.backfill.source, *key)
    if block is None:
        raise RuntimeError("a partition is held whose link has no lanes")
    return CopyOrder(
        topology=plan.topology,
        link=one.backfill.link,
        source=pair.source,
        target=pair.target,
        settings=lane_settings(plan, one.flow),
        work=work_of(
            one.record,
            one.backfill.partition,
            gap.token if gap is not None and gap.unreadable is None else "",
        ),
        lane=lane_in(block, *key),
        run=one.backfill.run,
        start=one.backfill.start,
        end=end,
        ends_backfill=False,
        throttle=throttle_part(one.flow.policy.throttle, parts),
    )
