"""An incremental fetch session with one broker (KIP-227): only what changed is asked for again. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from replicator.batches.codec.fetch_codec import TopicKey, Wanted

_LAST_EPOCH = (1 << 31) - 1
_FULL = 0

Partitions = Mapping[tuple[TopicKey, int], Wanted]


@dataclass(slots=True)
class FetchDelta:
    """What goes into one request; ``session`` is id and epoch."""

    session: tuple[int, int]
    wanted: dict[TopicKey, dict[int, Wanted]] = field(default_factory=dict)
    forgotten: dict[TopicKey, list[int]] = field(default_factory=dict)


class FetchSession:
    """What the broker knows of our wishes; one request at a time."""

    def __init__(self) -> None:
        self._id = 0
        self._epoch = _FULL
        self._known: Partitions = {}
        self._asking: Partitions = {}

    def ask(self, wanted: Partitions) -> FetchDelta:
        """The request that makes the broker want what we want; ``wanted`` stays as it is from now on."""
        delta = FetchDelta((self._id, self._epoch))
        known: Partitions = {} if self._epoch == _FULL else self._known
        self._asking = wanted
        if known is wanted:
            return delta
        for key, each in wanted.items():
            if known.get(key) != each:
                delta.wanted.setdefault(key[0], {})[key[1]] = each
        for topic, partition in known:
            if (topic, partition) not in wanted:
                delta.forgotten.setdefault(topic, []).append(partition)
        return delta

    def answered(self, error: int, session_id: int) -> bool:
        """Takes in the outcome; False when the session is void and the next request is a full one."""
        if error:
            self.reset()
            return False
        self._known = self._asking
        if not session_id:
            self.reset()  # a broker without room for sessions: full requests it is
            return True
        if self._epoch == _FULL:
            self._id, self._epoch = session_id, 1
        else:
            self._epoch = 1 if self._epoch == _LAST_EPOCH else self._epoch + 1
        return True

    def reset(self) -> None:
        """The connection or the session is lost."""
        self._id, self._epoch = 0, _FULL
        self._known = {}
