"""What a session knows of the log of one target partition, and what it expects of it.

Only this lane copies into it, and others may write beside it: so the log is at least as long as it was
when it was last seen, and everything that was produced since. A record that is stored below that shows
that the log lost what it had acknowledged (recreated, restored, or cut by an unclean election).
"""

from replicator.dataplane.transport.delivery import OnDelivery
from replicator.formats.checkpoint import TargetClaim
from replicator.kafka.clients.client import KafkaError, Message


class TargetLog:
    """Of one partition; used by the lane's thread only.

    Attributes:
        end: an offset that the log reaches at least once the open unit is stored; -1 when not known.
        last_copied: source offset of the last record that was produced; -1 when not known.
    """

    __slots__ = (
        "_asked",
        "_last_stored",
        "_leader_epoch",
        "_rewinds",
        "_topic_id",
        "_undecided",
        "_unit",
        "end",
        "last_copied",
    )

    def __init__(self) -> None:
        self.end = -1
        self.last_copied = self._last_stored = -1
        self._topic_id = ""
        self._leader_epoch = -1
        self._rewinds: tuple[tuple[int, int], ...] = ()
        self._undecided = False
        self._unit = 0
        self._asked = False

    def adopt(self, claim: TargetClaim, *, undecided: bool = False) -> None:
        """Begins with what was stored, or was just seen.

        Where the last copies are ``undecided`` until this lane commits there, the claim names no leader:
        the next owner then looks again.
        """
        self._undecided = undecided
        self.end, self.last_copied = claim.end, claim.last_copied
        self._last_stored = claim.last_copied
        self._topic_id, self._leader_epoch = claim.topic_id, claim.leader_epoch
        self._rewinds = claim.rewinds
        self._unit = 0
        self._asked = False

    def claim(self) -> TargetClaim:
        """What a checkpoint made now says of the log."""
        epoch = -1 if self._undecided else self._leader_epoch
        return TargetClaim(self._topic_id, self.end, epoch, self.last_copied, self._rewinds)

    def acknowledged(self) -> TargetClaim:
        """The same without the open unit, whose records may be on their way."""
        end = self.end if self.end < 0 else self.end - self._unit
        return TargetClaim(self._topic_id, end, self._leader_epoch, self.last_copied, self._rewinds)

    def changed(self, leader_epoch: int, topic_id: str) -> str:
        """How the log differs from the one that was last seen; empty where it does not, or nobody knows."""
        if topic_id and self._topic_id and topic_id != self._topic_id:
            return "is another topic now"
        if leader_epoch > self._leader_epoch >= 0:
            return "has another leader now"
        return ""

    def produced(self, records: int, last_copied: int) -> None:
        """Takes in records that were handed to the producer; the last one's source offset."""
        self._unit += records
        self.last_copied = last_copied
        if self.end >= 0:
            self.end += records

    def took(self, offset: int, count: int) -> str:
        """Takes in that ``count`` records without our marks begin there; what is wrong with that, if anything."""
        if offset < self.end:
            return f"the target stored a batch at offset {offset} of a log that reached {self.end}"
        if self.end >= 0:
            self.end = offset + count
        self.last_copied = -1
        return ""

    def stored(self, *, marker: bool) -> None:
        """The open unit was committed; a ``marker`` ends it in the log, where records are in it."""
        if marker and self._unit:
            self._undecided = False
            if self.end >= 0:
                self.end += 1
        self._last_stored = self.last_copied
        self._unit = 0
        self._asked = False

    def aborted(self) -> None:
        """Nothing is known of where the open unit's records stand, if they were sent at all."""
        if self.end >= 0:
            self.end -= self._unit
        self.last_copied = self._last_stored
        self._unit = 0
        self._asked = False

    def report_for(self, noted: OnDelivery | None) -> tuple[OnDelivery | None, int]:
        """The delivery report for the next record, and the least offset it may have.

        One is asked for in each unit; -1 where nothing is expected of the record.
        """
        if self._asked or self.end < 0:
            return noted, -1
        self._asked = True
        expected = self.end

        def delivered(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            if error is None and offset is not None and offset > expected and self._asked:
                self.end += offset - expected  # others wrote in between
            if noted is not None:
                noted(error, message)

        return delivered, expected
