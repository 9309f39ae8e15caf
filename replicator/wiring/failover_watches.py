"""What a worker runs for its links beside copying: witnesses that promote, and looks at clusters that were left.

Both take long to import and most topologies need neither, so each is imported once a link wants it.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from replicator.clock import Clock
from replicator.control.store.state import ControlState
from replicator.topology.plan import Plan
from replicator.topology.roles import Role

if TYPE_CHECKING:
    from replicator.failover.run.automatic import AutomaticFailover
    from replicator.failover.run.return_watch import ReturnWatch


class FailoverWatches:
    """Threads of one worker, as the plan and the roles of its links want them."""

    def __init__(
        self,
        *,
        serves: Callable[[str], bool],
        roles: Callable[[], Mapping[str, Role]],
        states: Callable[[], Mapping[str, ControlState]],
        worker: str,
        clock: Clock,
    ) -> None:
        """``serves`` says whether this worker serves a cluster; ``worker`` is its id.

        ``roles``, by link, and ``states``, of control topics by cluster, are what it follows.
        """
        self._serves = serves
        self._roles = roles
        self._states = states
        self._worker = worker
        self._clock = clock
        self._witnesses: tuple[AutomaticFailover, ...] = ()
        self._returns: tuple[ReturnWatch, ...] = ()

    def follow(self, plan: Plan) -> None:
        """Ends what another plan had, and starts what this one wants."""
        self.stop()
        self._witnesses, self._returns = (), ()
        if any(link.procedure.automatic is not None for link in plan.links):
            from replicator.failover.run.automatic import witnessed

            self._witnesses = witnessed(
                plan, self._serves, self._role, worker=self._worker, clock=self._clock
            )
            for witness in self._witnesses:
                witness.start()
        self.watch_returns(plan)

    def watch_returns(self, plan: Plan) -> None:
        """Watches the clusters that failovers left, from the first one that there was."""
        promoted = any(role.state == "promoted" for role in self._roles().values())
        if self._returns or not promoted:
            return
        from replicator.failover.run.return_watch import return_watches

        self._returns = return_watches(
            plan, self._serves, self._role, self._states, clock=self._clock
        )
        for watch in self._returns:
            watch.start()

    def stop(self) -> None:
        """Ends all of them soon; does not wait."""
        for witness in self._witnesses:
            witness.stop()
        for watch in self._returns:
            watch.stop()

    def _role(self, link: str) -> Role:
        return self._roles()[link]
