"""Group positions at a role change: the last exact sync while the old side still answers."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from replicator.clock import Clock
from replicator.errors import ReplicatorError
from replicator.failover.clusters.link_clusters import CLIENT_ID, LinkClusters
from replicator.offsets.group_report import GroupOutcome, SyncReport
from replicator.offsets.group_sync import GroupSync, groups_of
from replicator.offsets.translator import Translator


@dataclass(frozen=True, slots=True)
class GroupsSeen:
    """One round over the link's groups."""

    report: SyncReport
    unread: Mapping[str, int]
    """Groups at work on the old side, by name, with what they have not read and committed yet."""

    @property
    def ready(self) -> bool:
        """Whether nobody on the old side will commit anything more that matters."""
        return not self.unread

    @property
    def live_on_new(self) -> tuple[str, ...]:
        """Groups that are at work on the new side."""
        return tuple(one.group for one in self._groups() if one.state == "active-on-target")

    @property
    def refused(self) -> tuple[tuple[str, str], ...]:
        """Groups whose position was not carried over, with the reason."""
        return tuple(
            (group, reason)
            for group, reason in self.report.refusals()
            if group not in self.live_on_new
        )

    def evidence(self) -> dict[str, object]:
        """Per group: its state and what a move re-reads at most, over its partitions."""
        return {
            one.group: {
                "state": one.state,
                "reread": sum(part.records_reread for part in one.partitions),
                "grades": sorted({part.grade for part in one.partitions}),
                "unread": self.unread.get(one.group, 0),
            }
            for one in self._groups()
        }

    def _groups(self) -> tuple[GroupOutcome, ...]:
        return self.report.groups


class GroupMove:
    """Syncs the link's groups from the old side to the new one; for one thread."""

    def __init__(self, sides: LinkClusters, *, clock: Clock) -> None:
        self._sides = sides
        plan, pair = sides.facing(sides.old), sides.pair(sides.old)
        self._plan, self._flow = plan, pair.flows[0]
        self._translator = Translator(plan, client_id=f"{CLIENT_ID}-groups", clock=clock)
        self._sync = GroupSync(plan, pair, translator=self._translator, clock=clock)

    def close(self) -> None:
        """Gives connections back."""
        self._translator.close()

    def round(self, *, commit: bool) -> GroupsSeen:
        """Looks at every group, and with ``commit`` carries its position over.

        Raises:
            ReplicatorError: a side does not answer.
        """
        old = self._sides.admin(self._sides.old)
        names = groups_of(self._plan, self._flow, old.list_groups())
        working = {
            name for name, group in old.describe_groups(names).items() if group.members
        } if names else set()  # fmt: skip
        report = asyncio.run(self._sync.run_once(commit=commit))
        unread = {
            one.group: lag
            for one in report.groups
            if one.group in working
            and (lag := sum(part.source_lag or 0 for part in one.partitions))
        }
        return GroupsSeen(report, unread)


def positions_on_new(sides: LinkClusters) -> dict[str, object]:
    """Where the link's groups stand on the new side by what is there alone: for a failover.

    Raises:
        ReplicatorError: the new side does not answer.
    """
    admin = sides.admin(sides.new)
    plan = sides.facing(sides.old)
    names = groups_of(plan, sides.flow(sides.old), admin.list_groups())
    control = sides.control(sides.new)
    keys = [
        (record.target, number)
        for record in control.topics(sides.old.alias, sides.link.name)
        for number in range(record.target_partitions)
    ]
    found: dict[str, object] = {}
    for name in names:
        try:
            stood = admin.committed_offsets(name, keys)
        except ReplicatorError as error:
            found[name] = {"failed": error.message}
            continue
        if stood:
            found[name] = {"partitions": len(stood)}
    return found
