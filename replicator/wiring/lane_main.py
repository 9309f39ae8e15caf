"""Composition root of a lane process: lanes, the check of their layout against the control topic, the index."""

import gc
import sys

from replicator.thread_stacks import show_stacks_on_signal

if __name__ == "__main__":  # who imports this file keeps its own ways
    gc.disable()  # while importing: it finds nothing and takes a tenth of the time; run_lane_process enables it
    show_stacks_on_signal()  # before what is slow to import, which is where it may hang

from replicator.control.lanes.lane_specs import lane_may_start
from replicator.control.store.state import ControlState
from replicator.dataplane.process.lane_process import run_lane_process
from replicator.dataplane.takeover.lane_records import EndOf
from replicator.dataplane.transport.spec import LaneSpec
from replicator.identifiers import control_topic
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.offsets.index.index import LaneIndex
from replicator.redaction import redact_tracebacks


def layout_still_holds(spec: LaneSpec, end_of: EndOf) -> bool:
    """Reads the control topic to its end and asks whether the spec's layout is the one in force, and its role allows it."""
    topic = control_topic(spec.topology)
    log = read_compacted(
        spec.target,
        topic,
        [0],
        client_id=f"replicator-{spec.topology}-layout",
        timeout_seconds=30.0,
        known_to_exist=True,
        past_open_transactions=True,  # nothing decided may be missed for a transaction that is open before it
        reaches={
            0: end_of((topic, 0))
        },  # a broker of the past would let a lane start that lost its role
    )
    return lane_may_start(ControlState().fold(log[0].items()), spec)


if __name__ == "__main__":
    redact_tracebacks()
    run_lane_process(int(sys.argv[1]), may_start=layout_still_holds, open_index=LaneIndex)
