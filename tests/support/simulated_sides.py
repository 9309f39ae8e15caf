"""One cluster of a link on virtual time: logs, control topic, checkpoints, rights, and who owns which id.

What a transaction writes is there at its commit, all or nothing. A commit may get no answer: it is done then, or
lost, or decided later, at the latest when the next owner initialises the id.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from replicator.control.store.state import EMPTY, ControlState
from replicator.errors import FencedError, UnknownOutcomeError, UnreachableError
from replicator.identifiers import TopicPartition
from replicator.policy.copies.acl_rules import TOPIC, AclBinding
from replicator.policy.copies.provenance import Headers

APPLICATION = "User:app"
LINK = "dr"
PLACES: tuple[TopicPartition, ...] = (("t", 0), ("t", 1))


@dataclass
class OpenTransaction:
    """Of an application: open, committed or aborted; with the partitions that get its marker."""

    id: str
    state: str = "open"
    places: set[TopicPartition] = field(default_factory=set)


@dataclass
class Entry:
    """One offset: a record by its number, or a marker (0)."""

    number: int
    headers: Headers = ()
    transaction: OpenTransaction | None = None
    at_ms: int = 0

    @property
    def state(self) -> str:
        """Of its transaction."""
        return "committed" if self.transaction is None else self.transaction.state


@dataclass
class Written:
    """What one of our producers has added to its transaction."""

    id: str
    epoch: int
    control: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    checkpoints: list[tuple[int, bytes, bytes | None]] = field(default_factory=list)
    records: list[tuple[TopicPartition, Entry]] = field(default_factory=list)


class Side:
    """A cluster; ``calm`` means that every answer arrives."""

    def __init__(self, alias: str, places: Iterable[TopicPartition], draw: random.Random) -> None:
        self.alias = alias
        self.up = True
        self.calm = False
        self.broken: list[str] = []
        self.logs: dict[TopicPartition, list[Entry]] = {place: [] for place in places}
        self.states: list[ControlState] = [EMPTY]
        self.checkpoints: dict[int, dict[bytes, bytes]] = {}
        topics = sorted({topic for topic, _ in self.logs})
        self.rules = {_write_rule(topic, APPLICATION, "ALLOW") for topic in topics}
        self.transaction: OpenTransaction | None = None
        self._draw = draw
        self._epochs: dict[str, int] = {}
        self._undecided: dict[str, Written] = {}

    # -- those who ask --------------------------------------------------------------------------

    def check(self) -> None:
        """Raises where it does not answer."""
        if not self.up or (not self.calm and self._draw.random() < 0.002):
            raise UnreachableError(f"{self.alias} does not answer", subject=self.alias)

    def settled(self) -> ControlState:
        """The control topic once no transaction is open there."""
        for id_ in sorted(self._undecided):
            self.decide(id_)
        return self.states[-1]

    def stable_end(self, place: TopicPartition) -> int:
        """The last stable offset."""
        log = self.logs[place]
        return next((n for n, one in enumerate(log) if one.state == "open"), len(log))

    def committed(self, place: TopicPartition) -> list[Entry]:
        """Records that a reader sees, in order."""
        log = self.logs[place][: self.stable_end(place)]
        return [one for one in log if one.number and one.state == "committed"]

    # -- applications ---------------------------------------------------------------------------

    def takes_writers(self) -> bool:
        """Whether applications may write."""
        return not any(
            one.permission == "DENY" and one.principal in {APPLICATION, "User:*"}
            for one in self.rules
        )

    def end_transaction(self, state: str) -> None:
        """An application ends its transaction, or the coordinator does."""
        ended, self.transaction = self.transaction, None
        if ended is not None:
            ended.state = state
            for place in sorted(ended.places):
                self.logs[place].append(Entry(0))

    # -- our transactions -----------------------------------------------------------------------

    def initialise(self, id_: str) -> Written:
        """A new owner of the id: the one before is fenced, and what it left open is decided."""
        if self.transaction is not None and self.transaction.id == id_:
            self.end_transaction("aborted")
        self.decide(id_)
        self._epochs[id_] = self._epochs.get(id_, 0) + 1
        return Written(id_, self._epochs[id_])

    def commit(self, written: Written) -> None:
        """All of it or nothing; the answer may be lost either way."""
        if self._epochs[written.id] != written.epoch:
            raise FencedError("another owner initialised the id", subject=written.id)
        if self.calm or self._draw.random() >= 0.03:
            self._apply(written)
            return
        outcome = self._draw.choice(("done", "lost", "later"))
        if outcome == "done":
            self._apply(written)
        elif outcome == "later":
            self._undecided[written.id] = written
        raise UnknownOutcomeError(f"no answer, and {outcome}")

    def decide(self, id_: str) -> None:
        """A commit without an answer is done now, or never."""
        late = self._undecided.pop(id_, None)
        if late is not None and self._draw.random() < 0.5:
            self._apply(late)

    def decide_all(self) -> None:
        """Everything that is under way arrives."""
        for id_ in sorted(self._undecided):
            self.decide(id_)

    def _apply(self, written: Written) -> None:
        for partition, key, value in written.checkpoints:
            there = self.checkpoints.setdefault(partition, {})
            if value is None:
                there.pop(key, None)
            else:
                there[key] = value
        for place, entry in written.records:
            if entry.number in {one.number for one in self.logs[place]}:
                self.broken.append(
                    f"record {entry.number} is twice on {self.alias}, by {written.id}"
                )
            self.logs[place].append(entry)
        if written.control:
            after = self.states[-1].fold(written.control)
            self._judge_roles(self.states[-1], after)
            self.states.append(after)

    def _judge_roles(self, before: ControlState, after: ControlState) -> None:
        held, now = before.role(LINK), after.role(LINK)
        if held is not None and (now is None or now.role().rank < held.role().rank):
            self.broken.append(f"the role on {self.alias} went back from {held} to {now}")


def _write_rule(topic: str, principal: str, permission: str) -> AclBinding:
    return AclBinding(TOPIC, "LITERAL", topic, principal, "*", "WRITE", permission)


def numbers(entries: Sequence[Entry]) -> list[int]:
    """Of records, for messages."""
    return [one.number for one in entries]
