"""Which lanes of a link nobody works on, as the control topic tells it. Pure."""

from replicator.control.store.state import ControlState
from replicator.control.store.worker_record import fresh_workers


def unowned_lanes(
    control: ControlState, *, source: str, link: str, now_ms: int
) -> tuple[int, ...] | None:
    """The lanes of the link that no worker claims; None while there is no layout to go by.

    Args:
        control: the control topic of the link's target.
        source: alias of the cluster it copies from.
        link: name of the link.
        now_ms: milliseconds since the epoch.
    """
    layout = control.layout(source)
    block = layout.block(link) if layout is not None and layout.state == "stable" else None
    if block is None:
        return None
    claimed = {
        lane for worker in fresh_workers(control, source, now_ms=now_ms) for lane in worker.lanes
    }
    return tuple(lane for lane in block.lanes if lane not in claimed)
