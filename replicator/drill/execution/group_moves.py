"""Whether a group may move now without reading anything again."""

import asyncio

from replicator.clock import SystemClock
from replicator.control.status.translator import open_translator
from replicator.drill.environment.environment import Scene
from replicator.offsets.groups.group_report import GroupOutcome
from replicator.offsets.groups.group_sync import GroupSync
from replicator.testing.kit.waiting import NotInTimeError, wait_until

CLIENT_ID = "replicator-drill"
_LOOK_SECONDS = 0.5


def wait_until_exact(scene: Scene, *, timeout_seconds: float) -> str:
    """Waits until the drill's group stands on the target exactly where it stands on the source.

    Returns what was found, also when that did not come in time: then the move shows what it costs.
    """
    clock = SystemClock()
    with open_translator(scene.plan, client_id=CLIENT_ID, clock=clock) as translator:
        sync = GroupSync(scene.plan, scene.pair, translator=translator, clock=clock)
        seen: list[GroupOutcome] = []

        def exact() -> bool:
            report = asyncio.run(sync.run_once(commit=False, groups=[scene.group]))
            seen[:] = report.groups
            return bool(seen) and all(_is_exact(each) for each in seen)

        try:
            wait_until(
                exact,
                timeout_seconds=timeout_seconds,
                describe="exact group positions",
                interval_seconds=_LOOK_SECONDS,
            )
        except NotInTimeError:
            reread = sum(part.records_reread for each in seen for part in each.partitions)
            return f"moved without exact positions: {reread} records to be read again at most"
    return "its positions were exact"


def _is_exact(group: GroupOutcome) -> bool:
    return group.state == "synced" and all(
        part.grade == "exact" and part.records_reread == 0 for part in group.partitions
    )
