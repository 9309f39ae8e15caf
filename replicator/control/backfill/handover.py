"""Taking partitions from lanes for Spark, and giving them back. The shell around the hand-over.

Order of taking, and why (docs/decisions/bulk-sync-hand-over.md has the argument):

1. the controller producer is opened, which fences any other controller, and only then the control
   topic is read;
2. in one transaction: the partitions are ``seeding``, and the layout gets a new epoch, so that an
   order that was made before can start no lane any more;
3. the lanes that held them are fenced: what they had not committed is aborted.

Only then tasks begin. Interrupted anywhere, it is done again from the start.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from replicator.clock import Clock
from replicator.control.backfill.retention import expired
from replicator.control.lanes.layout import lane_in
from replicator.control.records.base import Record
from replicator.control.records.pair_records import BackfillRecord
from replicator.control.store.controller_writer import ControllerWriter, Placed
from replicator.control.store.read import read_control
from replicator.control.store.state import ControlState
from replicator.errors import FencedError, RefusedError
from replicator.identifiers import control_topic, seed_transactional_id
from replicator.kafka.logs.checkpoint_log import read_checkpoints
from replicator.kafka.logs.log_writer import LogWriter
from replicator.topology.plan import PairPlan, Plan

CLIENT_ID = "replicator-seed"
_ATTEMPTS = 8
"""A worker's controller opens its producer again at its next round, which fences ours: then we open ours again."""
_FENCES_AT_ONCE = 4

_Use = Callable[[ControllerWriter], None]


def take_from_lanes(
    plan: Plan, pair: PairPlan, records: Sequence[BackfillRecord], *, clock: Clock
) -> None:
    """Declares the partitions and fences their lanes; afterwards nothing but tasks copies them.

    Raises:
        RefusedError: lanes are being changed, a partition has no lane, or the link was turned.
        ClusterError: the target does not answer; it may be declared, and the same call again goes on.
    """
    if not records:
        return
    _with_writer(plan, pair, clock, lambda writer: _take(plan, pair, records, writer))


def hand_back(
    plan: Plan, pair: PairPlan, records: Sequence[BackfillRecord], *, clock: Clock
) -> None:
    """Ends unfinished ranges where they stand; lanes go on from their checkpoints.

    First no task may begin any more, then those that began are fenced, then lanes may go on.

    Raises:
        ClusterError: the target does not answer; the same call again goes on.
    """
    held = [record for record in records if record.state != "done"]
    if not held:
        return

    def write(writer: ControllerWriter, state: str) -> None:
        at_ms = round(clock.now() * 1000)
        writer.write(
            _placed(plan, (one.model_copy(update={"state": state, "at_ms": at_ms}) for one in held))
        )

    _with_writer(plan, pair, clock, lambda writer: write(writer, "releasing"))
    with ThreadPoolExecutor(_FENCES_AT_ONCE, thread_name_prefix="fence") as pool:
        list(pool.map(lambda record: _fence(plan, pair, record), held))
    _with_writer(plan, pair, clock, lambda writer: write(writer, "done"))


def delete_expired(plan: Plan, pair: PairPlan, *, clock: Clock) -> int:
    """Deletes the backfill records that nobody needs any more; returns how many.

    What is deleted is read after the controller producer was opened, so no declaration comes in between.

    Raises:
        ClusterError: the target does not answer; the same call again does it.
    """

    def old() -> tuple[BackfillRecord, ...]:
        control, checkpoints = (
            read_control_past_open_transactions(plan, pair),
            read_checkpoints(plan.topology, pair, client_id=CLIENT_ID),
        )
        now_ms = round(clock.now() * 1000)
        return expired(control, pair.source.alias, checkpoints, now_ms=now_ms)

    if not old():
        return 0  # opening the producer would fence the running controller for nothing
    deleted = 0

    def write(writer: ControllerWriter) -> None:
        nonlocal deleted
        records, topic = old(), control_topic(plan.topology)
        writer.write([Placed(topic, 0, *record.tombstone()) for record in records])
        deleted = len(records)

    _with_writer(plan, pair, clock, write)
    return deleted


def read_control_past_open_transactions(plan: Plan, pair: PairPlan) -> ControlState:
    """The target's control topic with everything that was ever committed to it.

    Raises:
        ClusterError: the target does not answer, or has no control topic (``NotFoundError``).
    """
    return read_control(
        plan.topology,
        pair.target,
        client_id=CLIENT_ID,
        timeout_seconds=30.0,
        past_open_transactions=True,
    )


def _take(
    plan: Plan, pair: PairPlan, records: Sequence[BackfillRecord], writer: ControllerWriter
) -> None:
    control = read_control_past_open_transactions(plan, pair)
    layout = control.layout(pair.source.alias)
    if layout is None or layout.state != "stable":
        raise RefusedError(
            "its lanes are being changed",
            subject=str(pair.id),
            remedy="Wait until 'replicator status' shows it replicating, then try again.",
        )
    for link in sorted({record.link for record in records}):
        role = control.role(link)
        if role is not None and not role.role().lets(pair.source.alias):
            raise RefusedError(
                f"link {link} does not copy in this direction now",
                subject=str(pair.id),
                remedy="See 'replicator status' for its role; run it again for the flow in force.",
            )
    lanes: set[int] = set()
    for record in records:
        block = layout.block(record.link)
        if block is None:
            raise RefusedError(
                f"link {record.link} has no lanes yet",
                subject=str(pair.id),
                remedy="Run 'replicator apply' first.",
            )
        lanes.add(lane_in(block, record.topic, record.partition))
    anew = layout.model_copy(update={"epoch": layout.epoch + 1})
    writer.write(_placed(plan, (*records, anew)))
    writer.fence_lanes(sorted(lanes))


def _with_writer(plan: Plan, pair: PairPlan, clock: Clock, call: _Use) -> None:
    for attempt in range(_ATTEMPTS):
        writer = ControllerWriter(pair, plan.topology, client_id=CLIENT_ID)
        try:
            call(writer)
        except FencedError:
            if attempt == _ATTEMPTS - 1:
                raise
            clock.sleep(0.2 * (attempt + 1))  # lets the other controller finish what it is writing
        else:
            return
        finally:
            writer.close()


def _placed(plan: Plan, records: Iterable[Record]) -> list[Placed]:
    topic = control_topic(plan.topology)
    return [Placed(topic, 0, *record.encode()) for record in records]


def _fence(plan: Plan, pair: PairPlan, record: BackfillRecord) -> None:
    identity = seed_transactional_id(
        plan.topology, pair.source.alias, pair.target.alias, record.topic, record.partition
    )
    with LogWriter(
        pair.target, control_topic(plan.topology), client_id=CLIENT_ID, transactional_id=identity
    ) as writer:
        writer.open()
