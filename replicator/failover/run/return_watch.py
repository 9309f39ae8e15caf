"""Watches the cluster that a failover left: fences it once it answers, and looks who writes there.

Runs in every worker that serves a cluster of a link with roles, and acts only while the link is
``promoted`` and no transition holds it. Workers that do it at the same time write the same.
"""

import threading
from collections.abc import Callable, Mapping
from functools import partial

import structlog

from replicator.clock import Clock
from replicator.control.roles.open_transitions import open_transition
from replicator.control.store.state import ControlState
from replicator.errors import ReplicatorError
from replicator.failover.clusters.link_clusters import LinkClusters
from replicator.failover.clusters.returned import NOT_FENCED, ReturnedCluster
from replicator.failover.external.witness_client import reaches
from replicator.topology.plan import LinkPlan, Plan
from replicator.topology.roles import Role, has_roles

log = structlog.get_logger("failover")

INTERVAL_SECONDS = 2.0
ANSWER_SECONDS = 2.0
FENCE_LOOKS = 5
"""The fence is looked at again every so many looks."""


class ReturnWatch(threading.Thread):
    """Watches one link until stopped."""

    def __init__(
        self,
        plan: Plan,
        link: LinkPlan,
        *,
        role: Callable[[], Role],
        states: Callable[[], Mapping[str, ControlState]],
        clock: Clock,
    ) -> None:
        """``role`` and ``states`` (control topics by cluster) are what this worker follows."""
        super().__init__(name=f"return-{link.name}", daemon=True)
        self._plan = plan
        self._link = link
        self._role = role
        self._states = states
        self._clock = clock
        self._stopping = threading.Event()
        self._returned: ReturnedCluster | None = None
        self._looks = 0
        self._fence = ""

    def stop(self) -> None:
        """Stops soon; does not wait."""
        self._stopping.set()

    def run(self) -> None:
        """Looks every two seconds; an error is logged, and the next look is on time."""
        while not self._stopping.wait(INTERVAL_SECONDS):
            try:
                self._check()
            except ReplicatorError as error:
                log.info("the cluster left by a failover does not answer", link=self._link.name,
                         error=error.message)  # fmt: skip
                self._leave()
            except Exception:  # a thread that ended silently would never notice a return
                log.exception("a look at a returning cluster failed", link=self._link.name)
                self._leave()
        self._leave()

    def _check(self) -> None:
        role, states = self._role(), self._states()
        active = states.get(role.active)
        busy = open_transition(states.values(), self._link.name) is not None
        if role.state != "promoted" or busy or active is None:
            self._leave()
            return
        if self._returned is not None and self._returned.role.epoch != role.epoch:
            self._leave()
        returned = self._returned or self._answering(role)
        if returned is None:
            return
        alias = str(returned.clusters.old.alias)
        name = self._link.name
        if not self._looks % FENCE_LOOKS:
            held = active.fence(name, alias)
            record = active.role(name)
            fencing = self._link.procedure.fencing
            by_acl = fencing is not None and fencing.method == "acl"
            if not self._looks or by_acl or self._fence.startswith(NOT_FENCED):
                transition = record.transition if record is not None else ""
                self._fence = returned.fence(fencing, held, transition)
        self._looks += 1
        known = active.returned(name, alias)
        known = known if known is not None and known.epoch == role.epoch else None
        found = returned.look(known, self._fence)
        if found != known:
            returned.store(found)
            before = known.problems if known is not None else ()
            for problem in found.problems:
                if problem not in before:
                    log.error("found on a cluster that returned", link=name, code=problem.code,
                              subject=problem.subject, detail=problem.detail)  # fmt: skip
            if known is None:
                log.warning("a cluster left by a failover answers again", link=name, cluster=alias,
                            tail_records=found.tail, fence=found.fence)  # fmt: skip

    def _answering(self, role: Role) -> ReturnedCluster | None:
        """The cluster that was left, once it answers."""
        alias = next(str(one) for one in self._link.clusters if one != role.active)
        passive = self._plan.cluster(alias)
        if not reaches(passive, timeout_seconds=ANSWER_SECONDS):
            return None
        active = self._plan.cluster(role.active)
        clusters = LinkClusters(self._plan, self._link, passive, active)
        self._returned = ReturnedCluster(clusters, role, self._clock)
        return self._returned

    def _leave(self) -> None:
        returned, self._returned, self._looks = self._returned, None, 0
        if returned is not None:
            returned.clusters.close()


def return_watches(
    plan: Plan,
    serves: Callable[[str], bool],
    role: Callable[[str], Role],
    states: Callable[[], Mapping[str, ControlState]],
    *,
    clock: Clock,
) -> tuple[ReturnWatch, ...]:
    """A thread, not started, for every link with roles of which this worker serves a cluster."""
    return tuple(
        ReturnWatch(plan, link, role=partial(role, link.name), states=states, clock=clock)
        for link in plan.links
        if has_roles(link) and link.standby and any(serves(str(alias)) for alias in link.clusters)
    )
