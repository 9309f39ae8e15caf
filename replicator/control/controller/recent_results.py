"""What a controller remembers of the actions of its last rounds, until the clusters show it."""

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet

from replicator.clock import Clock
from replicator.problem import Problem

REFUSAL_SECONDS = 30.0
"""How long a refused action rests before it is tried again: rights and policies change rarely."""

CREATED_SECONDS = 30.0
"""How long a created topic may stay unseen: metadata of other brokers follows within moments."""


class RecentResults:
    """Refused actions, and created topics that do not show yet; both are forgotten in time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refusals: dict[str, tuple[float, Problem]] = {}
        self._created: dict[str, float] = {}

    @property
    def refusals(self) -> dict[str, Problem]:
        """Problems by the identity of the action that was refused."""
        now = self._clock.monotonic()
        self._refusals = {
            identity: (at, problem)
            for identity, (at, problem) in self._refusals.items()
            if now - at < REFUSAL_SECONDS
        }
        return {identity: problem for identity, (_, problem) in self._refusals.items()}

    @property
    def created(self) -> AbstractSet[str]:
        """Topics that were created and not seen since."""
        return self._created.keys()

    def remember(self, *, created: Iterable[str], refusals: Mapping[str, Problem]) -> None:
        """Keeps what a round's actions came to."""
        now = self._clock.monotonic()
        self._created.update(dict.fromkeys(created, now))
        self._refusals.update({identity: (now, problem) for identity, problem in refusals.items()})

    def seen(self, names: Collection[str]) -> None:
        """Forgets created topics that the cluster shows, or should have shown long ago."""
        now = self._clock.monotonic()
        self._created = {
            topic: at
            for topic, at in self._created.items()
            if topic not in names and now - at < CREATED_SECONDS
        }
