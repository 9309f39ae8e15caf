"""What the last owner of a lane stored: its checkpoints and its offset index.

To be read after the producer was initialised: the last owner is fenced then and its open transaction aborted, so that
nothing can be added to what is read here.
"""

from collections.abc import Callable

from replicator.dataplane.takeover.own_transaction import OwnTransaction
from replicator.dataplane.transport.spec import LaneSpec
from replicator.errors import ReplicatorError
from replicator.identifiers import TopicPartition, checkpoints_topic
from replicator.kafka.logs.compacted_log import LogTail
from replicator.kafka.logs.topic_lookup import OnWait

EndOf = Callable[[TopicPartition], int]
"""Where a log of the target ends, shown by writing to it: who acknowledges a write leads it, whatever others say."""


def lane_tail(spec: LaneSpec, *, client_id: str) -> LogTail:
    """Reads the lane's partition of the checkpoints topic; for ``read_lane_records``."""
    topic = checkpoints_topic(spec.topology, spec.source.alias)
    return LogTail(spec.target, topic, [spec.lane], client_id=client_id)


def read_lane_records(
    spec: LaneSpec,
    *,
    client_id: str,
    tail: LogTail | None = None,
    on_wait: OnWait = lambda _: None,
    own: OwnTransaction | None = None,
    end_of: EndOf | None = None,
) -> dict[bytes, bytes]:
    """The last value of every key in the lane's partition: checkpoints, and its index.

    A ``tail`` that has read a part of them before reads the rest, and is closed. With ``end_of`` what a broker shows
    is believed only if it reaches as far as that says: one that is cut off from the others shows what was stored
    before, and the lane would copy again what others copied since.

    Backfill tasks write there too: what the last owner stored may stand behind a transaction of one
    of them that is open now, and must not be missed. ``on_wait`` is told every few seconds why that takes longer.
    One of the lane's own is ended, where ``own`` says how.
    """

    def waits(error: ReplicatorError) -> None:
        on_wait(error)
        if own is not None:
            place = (checkpoints_topic(spec.topology, spec.source.alias), spec.lane)
            own.end_where_it_hides(spec.target, place, client_id=client_id)

    with tail or lane_tail(spec, client_id=client_id) as opened:
        place = (checkpoints_topic(spec.topology, spec.source.alias), spec.lane)
        found = opened.load(
            timeout_seconds=30.0, past_open_transactions=True, known_to_exist=True, on_wait=waits,
            reaches={} if end_of is None else {spec.lane: end_of(place)},
        )  # fmt: skip
        return found[spec.lane]
