"""What is said of partitions that stand still while history is copied, and what is asked of rights before."""

from replicator.control.backfill.rights import lacking
from replicator.control.backfill.standstill import STILL_SECONDS, Standstill
from replicator.errors import (
    NotAuthorizedError,
    NotFoundError,
    TransientBrokerError,
    UnreachableError,
)
from replicator.kafka.admin.topics import TopicDescription


class Seen:
    """A run whose clusters answer what they are told."""

    def __init__(self):
        self.asked, self.said, self.reasons, self.now = [], [], {}, 0.0
        self.still = Standstill(self._ask, lambda *told: self.said.append(told), clock=self)

    def monotonic(self):
        return self.now

    def _ask(self, places):
        self.asked.append(places)
        return {place: self.reasons[place] for place in places if place in self.reasons}

    def look(self, seconds, **positions):
        """Looks every second at partitions of the topic ``t``."""
        for _ in range(int(seconds)):
            self.now += 1
            self.still.look({("t", int(key[1:])): at for key, at in positions.items()})


def test_a_partition_that_is_stuck_for_a_reason_is_named_once():
    seen = Seen()
    seen.reasons["t", 1] = TransientBrokerError("no leader")
    seen.look(STILL_SECONDS * 5, p0=3, p1=0)
    assert seen.asked[0] == [("t", 0), ("t", 1)]
    assert [(place, str(reason)) for place, reason in seen.said] == [(("t", 1), "no leader")]
    seen.look(1, p0=3, p1=1)
    seen.look(STILL_SECONDS * 2, p0=3, p1=1)
    assert len(seen.said) == 2


def test_nobody_is_asked_while_everything_moves():
    seen = Seen()
    for at in range(50):
        seen.look(1, p0=at)
    assert seen.asked == []


def test_a_target_that_does_not_answer_is_reported_once_until_it_does():
    seen = Seen()
    for _ in range(3):
        seen.still.unknown(UnreachableError("no broker answers"))
    seen.look(1, p0=0)
    seen.still.unknown(UnreachableError("no broker answers"))
    assert [place for place, _ in seen.said] == [None, None]


def described(*operations):
    return TopicDescription("t", "id", 1, 1, (), frozenset(operations))


def test_rights_are_missing_only_where_brokers_say_so():
    needed = {"t": frozenset({"READ", "WRITE"})}

    def missing(answer):
        return [str(each) for each in lacking("east", needed, {"t": answer})]

    assert missing(described("READ", "DESCRIBE")) == ["WRITE on topic 't' of east"]
    assert missing(described("READ", "WRITE", "DESCRIBE")) == []
    assert missing(described("ALL")) == []
    assert missing(described()) == []  # an old broker says nothing
    assert missing(NotFoundError("no topic")) == []
    assert len(missing(NotAuthorizedError("refused"))) == 2
