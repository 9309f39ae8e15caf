"""Following roles: one light tail on the control topic of each cluster whose links have roles.

A resting pair costs nothing but this. A cluster that cannot be read is tried again and again in its
own thread; what it said before still counts, because epochs only grow.
"""

import threading
import time
from collections.abc import Callable, Iterable

import structlog

from replicator.control.store.records import decode_record
from replicator.control.store.role_records import RoleRecord, TransitionRecord
from replicator.errors import NotFoundError, ReplicatorError
from replicator.identifiers import control_topic
from replicator.kafka.compacted_log import LogTail
from replicator.topology.plan import ClusterPlan, Plan
from replicator.topology.roles import Role, has_roles, role_in_force

log = structlog.get_logger("control")

POLL_SECONDS = 1.0
FETCH_WAIT_SECONDS = 2.0
"""A broker answers at once when something is written; this is only how often silence is told."""

LOAD_SECONDS = 15.0


def role_clusters(plan: Plan) -> tuple[ClusterPlan, ...]:
    """The clusters of links with roles, each once."""
    aliases = dict.fromkeys(
        alias for link in plan.links if has_roles(link) for alias in link.clusters
    )
    return tuple(plan.cluster(alias) for alias in aliases)


class RoleWatch:
    """Knows the role of every link; calls ``on_change`` from its threads when one changes."""

    def __init__(self, plan: Plan, *, client_id: str, on_change: Callable[[], None]) -> None:
        self._plan = plan
        self._client_id = f"{client_id}-roles"
        self._on_change = on_change
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, str], Role] = {}
        self._changes: dict[str, TransitionRecord] = {}
        self._stopping = threading.Event()
        self._threads = [
            _Follower(cluster, self, plan.topology, self._client_id)
            for cluster in role_clusters(plan)
        ]

    def start(self, wait_seconds: float) -> None:
        """Begins; returns when every cluster was read once or has failed once, or after the time."""
        for thread in self._threads:
            thread.start()
        deadline = time.monotonic() + wait_seconds
        for thread in self._threads:
            thread.looked.wait(max(0.0, deadline - time.monotonic()))

    def roles(self) -> dict[str, Role]:
        """The role in force of every link that has one, by link."""
        with self._lock:
            seen = list(self._seen.values())
        return {
            link.name: role_in_force(link, [role for role in seen if role.link == link.name])
            for link in self._plan.links
            if has_roles(link)
        }

    def last_change(self, link: str) -> TransitionRecord | None:
        """The last role change of a link that was done."""
        with self._lock:
            return self._changes.get(link)

    def stop(self) -> None:
        """Ends the tails soon; does not wait."""
        self._stopping.set()

    @property
    def stopping(self) -> threading.Event:
        """Set once the watch is to end."""
        return self._stopping

    def take(self, alias: str, entries: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Notes what a cluster's control topic says; kinds that tell nothing of roles are passed over."""
        before = self.roles()
        for key, value in entries:
            decoded = decode_record(key, value)
            record = decoded[1] if decoded is not None else None
            with self._lock:
                if isinstance(record, RoleRecord):
                    role = record.role()
                    known = self._seen.get((alias, role.link))
                    if known is None or role.rank >= known.rank:  # epochs only grow
                        self._seen[alias, role.link] = role
                elif isinstance(record, TransitionRecord) and record.state == "done":
                    held = self._changes.get(record.link)
                    if held is None or record.at_ms >= held.at_ms:
                        self._changes[record.link] = record
        if self.roles() != before:
            self._on_change()


class _Follower(threading.Thread):
    """The tail of one cluster."""

    def __init__(
        self, cluster: ClusterPlan, watch: RoleWatch, topology: str, client_id: str
    ) -> None:
        super().__init__(name=f"roles-{cluster.alias}", daemon=True)
        self._cluster = cluster
        self._watch = watch
        self._topic = control_topic(topology)
        self._client_id = client_id
        self.looked = threading.Event()

    def run(self) -> None:
        """Follows until the watch ends; an error begins the tail anew."""
        said = ""
        while not self._watch.stopping.is_set():
            try:
                self._follow()
            except NotFoundError:
                pass  # nothing was ever applied there, so nobody changed a role
            except ReplicatorError as error:
                if error.code != said:
                    log.info("roles are not followed for now", cluster=self._cluster.alias,
                             error=error.message)  # fmt: skip
                said = error.code
            self.looked.set()
            self._watch.stopping.wait(POLL_SECONDS)

    def _follow(self) -> None:
        with LogTail(
            self._cluster,
            self._topic,
            client_id=self._client_id,
            fetch_wait_seconds=FETCH_WAIT_SECONDS,
        ) as tail:
            held = tail.load(timeout_seconds=LOAD_SECONDS)
            self._watch.take(self._cluster.alias, held[0].items())
            self.looked.set()
            while not self._watch.stopping.is_set():
                entries = tail.poll(POLL_SECONDS)
                if entries:
                    self._watch.take(self._cluster.alias, entries)
