"""The one way to open a translator of positions: it knows what was put back from quarantine.

Records put back stand behind newer ones. Who takes them for the copies before them names a position that
skips records; so commands that answer and tasks that commit are given the same facts.
"""

from collections.abc import Callable, Iterable, Mapping

from replicator.clock import Clock
from replicator.control.store.read import read_control
from replicator.control.store.state import EMPTY, ControlState
from replicator.errors import NotFoundError
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.offsets.index.paths import ReplicatedPartition
from replicator.offsets.translation.translator import Translator
from replicator.topology.plan import Plan

CLIENT_ID = "replicator-offsets"


def open_translator(
    plan: Plan,
    *,
    client_id: str = CLIENT_ID,
    clock: Clock | None = None,
    admins: Iterable[ClusterAdmin] = (),
    followed: Callable[[], Mapping[str, ControlState]] = dict,
) -> Translator:
    """A translator for a command or a task.

    Args:
        plan: the topology.
        client_id: of its connections.
        clock: the time.
        admins: clients that are open already.
        followed: control topics that somebody follows, by cluster; the others are read each round.
    """
    replays = Replays(plan.topology, client_id=client_id, followed=followed)
    return Translator(plan, client_id=client_id, clock=clock, admins=admins, replayed=replays)


class Replays:
    """Source offsets that were put back from quarantine, from the control topics of the targets."""

    def __init__(
        self,
        topology: str,
        *,
        client_id: str,
        followed: Callable[[], Mapping[str, ControlState]],
    ) -> None:
        self._topology = topology
        self._client_id = client_id
        self._followed = followed
        self._states: dict[str, ControlState] = {}

    def refresh(self) -> None:
        """A round begins: what was read for the one before may be outdated."""
        self._states = dict(self._followed())

    def of(self, line: ReplicatedPartition) -> frozenset[int]:
        """Of one source partition and its copy.

        Raises:
            ReplicatorError: the target cannot be read.
        """
        alias = str(line.target.alias)
        if alias not in self._states:
            try:
                state = read_control(self._topology, line.target, client_id=self._client_id)
            except NotFoundError:
                state = EMPTY  # never applied
            self._states[alias] = state
        return frozenset(
            record.offset
            for record in self._states[alias].quarantine_outcomes(line.source.alias, line.topic)
            if record.outcome == "replayed" and record.partition == line.partition
        )
