"""Group positions at a role change: the last exact sync while the old cluster still answers."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from replicator.clock import Clock
from replicator.control.status.translator import open_translator
from replicator.errors import ReplicatorError
from replicator.failover.clusters.link_clusters import CLIENT_ID, LinkClusters
from replicator.offsets.groups.group_report import GroupOutcome, SyncReport
from replicator.offsets.groups.group_sync import GroupSync, groups_of

_LOOKS = 3
"""How often at most what was committed is looked at again in one round."""


@dataclass(frozen=True, slots=True)
class GroupsSeen:
    """One round over the link's groups."""

    report: SyncReport
    unread: Mapping[str, int]
    """Groups with members on the old cluster: how many records each has not committed yet."""

    committed: bool
    """Whether positions were set, not only looked at."""

    @property
    def unsettled(self) -> frozenset[str]:
        """Groups to look at again, see ``SyncReport``; those that still read will move again anyway."""
        return self.report.unsettled() - self.unread.keys() if self.committed else frozenset()

    @property
    def ready(self) -> bool:
        """Whether nobody on the old cluster will commit anything more that matters, and all is carried over."""
        return not (self.unread or self.unsettled)

    @property
    def waits_for(self) -> str:
        """What is missing to that, for people; empty where nothing is."""
        if self.unread:
            return "groups on the old cluster have not read to the end"
        if not self.unsettled:
            return ""
        return f"positions on the new cluster are still being set: {', '.join(sorted(self.unsettled)[:3])}"

    @property
    def live_on_new(self) -> tuple[str, ...]:
        """Groups that have members on the new cluster."""
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
    """Syncs the link's groups from the old cluster to the new one; for one thread."""

    def __init__(self, clusters: LinkClusters, *, clock: Clock) -> None:
        self._clusters = clusters
        plan, pair = clusters.facing(clusters.old), clusters.pair(clusters.old)
        self._plan, self._flow = plan, pair.flows[0]
        self._translator = open_translator(plan, client_id=f"{CLIENT_ID}-groups", clock=clock)
        self._sync = GroupSync(plan, pair, translator=self._translator, clock=clock)

    def close(self) -> None:
        """Closes the connections."""
        self._translator.close()

    def round(self, *, commit: bool, whole: bool = True) -> GroupsSeen:
        """Translates every group's position, and commits it on the new cluster with ``commit``.

        The workers' own sync goes on meanwhile, and may set a position that it worked out before: what was
        committed is looked at again, and set again where it has to be. With ``whole`` a list of groups that may
        lack some is an error; without, the report says so.

        Raises:
            ReplicatorError: a cluster does not answer.
        """
        old = self._clusters.admin(self._clusters.old)
        listed = old.list_groups() if whole else old.groups_listed().names
        names = groups_of(self._plan, self._flow, listed)
        working = {
            name for name, group in old.describe_groups(names).items() if group.active
        } if names else set()  # fmt: skip

        def taken_in(report: SyncReport) -> GroupsSeen:
            if whole and report.unheard is not None:
                raise report.unheard  # a group that is not seen would not be moved
            return GroupsSeen(report, _unread(report, working), commit)

        seen = taken_in(asyncio.run(self._sync.run_once(commit=commit)))
        for _ in range(_LOOKS):
            if not seen.unsettled:
                break
            newer = asyncio.run(self._sync.run_once(groups=seen.unsettled))
            seen = taken_in(seen.report.with_newer(newer))
        return seen


def _unread(report: SyncReport, working: Collection[str]) -> dict[str, int]:
    return {
        one.group: lag
        for one in report.groups
        if one.group in working and (lag := sum(part.source_lag or 0 for part in one.partitions))
    }


def positions_on_new(
    clusters: LinkClusters,
) -> tuple[dict[str, object], ReplicatorError | None]:
    """The groups' positions that are stored on the new cluster already, for a failover; and why there may be more.

    Raises:
        ReplicatorError: the new cluster does not answer.
    """
    admin = clusters.admin(clusters.new)
    plan = clusters.facing(clusters.old)
    listed = admin.groups_listed()
    names = groups_of(plan, clusters.flow(clusters.old), listed.names)
    control = clusters.control(clusters.new)
    keys = {
        (record.target, number)
        for record in control.topics(clusters.old.alias, clusters.link.name)
        for number in range(record.target_partitions)
    }
    found: dict[str, object] = {}
    for name, stands in admin.committed_offsets(names).items() if names else ():
        if isinstance(stands, ReplicatorError):
            found[name] = {"failed": stands.message}
        elif replicated := sum(place in keys for place in stands):
            found[name] = {"partitions": replicated}
    return found, listed.unheard
