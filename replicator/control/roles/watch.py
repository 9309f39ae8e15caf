"""The role of every link, as the control topics of its clusters say it.

A standby pair costs nothing but this. A cluster that cannot be read is tried again and again by its
follower; what it said before still counts, because epochs only grow.
"""

import threading
import time
from collections.abc import Callable

from replicator.control.records.role_records import TransitionRecord
from replicator.control.store.followers import ControlFollowers, ControlSubscription
from replicator.control.store.state import ControlState
from replicator.topology.plan import ClusterPlan, Plan
from replicator.topology.roles import Role, has_roles, role_in_force


def role_clusters(plan: Plan) -> tuple[ClusterPlan, ...]:
    """The clusters of links with roles, each once."""
    aliases = dict.fromkeys(
        alias for link in plan.links if has_roles(link) for alias in link.clusters
    )
    return tuple(plan.cluster(alias) for alias in aliases)


class RoleWatch(threading.Thread):
    """Knows the role of every link; calls ``on_change`` from its thread when one changes.

    The thread is its own: to act on a role takes seconds, for which no follower may stand still.
    """

    def __init__(
        self, plan: Plan, followers: ControlFollowers, *, on_change: Callable[[], None]
    ) -> None:
        super().__init__(name="roles", daemon=True)
        self._plan = plan
        self._followers = followers
        self._on_change = on_change
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, str], Role] = {}
        self._followed: dict[str, ControlSubscription] = {}
        self._news = threading.Event()
        self._stopping = threading.Event()

    def begin(self, wait_seconds: float) -> None:
        """Begins; returns when every cluster was read once or has failed once, or after the time."""
        self._followed = {
            str(cluster.alias): self._followers.subscribe(
                self._plan.topology, cluster, on_news=self._news.set, reads=False
            )
            for cluster in role_clusters(self._plan)
        }
        deadline = time.monotonic() + wait_seconds
        for followed in self._followed.values():
            followed.wait_until_looked(max(0.0, deadline - time.monotonic()))
        self._look()
        if self._followed:
            self.start()

    def run(self) -> None:
        """Looks whenever a control topic has news."""
        while not self._stopping.is_set():
            self._news.wait()
            self._news.clear()
            if self._look() and not self._stopping.is_set():
                self._on_change()

    def roles(self) -> dict[str, Role]:
        """The role in force of every link that has one, by link."""
        with self._lock:
            seen = list(self._seen.values())
        return {
            link.name: role_in_force(link, [role for role in seen if role.link == link.name])
            for link in self._plan.links
            if has_roles(link)
        }

    def states(self) -> tuple[ControlState, ...]:
        """What the control topics of links with roles said a moment ago."""
        return tuple(followed.readable for followed in self._followed.values())

    def last_change(self, link: str) -> TransitionRecord | None:
        """The last role change of a link that was done."""
        done = (
            one
            for followed in self._followed.values()
            for one in followed.readable.transitions(link)
            if one.state == "done"
        )
        return max(done, key=lambda one: one.at_ms, default=None)

    def stop(self) -> None:
        """Ends soon; does not wait."""
        self._stopping.set()
        self._news.set()
        for followed in self._followed.values():
            followed.close()

    def _look(self) -> bool:
        """Takes what is known of roles; whether one changed."""
        before = self.roles()
        for alias, followed in self._followed.items():
            state = followed.readable
            for link in self._plan.links:
                record = state.role(link.name)
                if record is None:
                    continue
                role = record.role()
                with self._lock:
                    known = self._seen.get((alias, role.link))
                    if known is None or role.rank >= known.rank:  # epochs only grow
                        self._seen[alias, role.link] = role
        return self.roles() != before
