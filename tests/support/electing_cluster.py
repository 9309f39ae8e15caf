"""A cluster in memory whose leaders change, cleanly or not, and whose topics are made anew."""

from dataclasses import dataclass

from fake_kafka import Entry, FakeCluster, Transaction


@dataclass(frozen=True, slots=True)
class PastLog:
    """A log as a broker shows it that has not heard of what happened since."""

    topic_id: str
    end: int
    stable: int
    epoch: int


class ElectingCluster(FakeCluster):
    """Each partition has an epoch of its leader, and knows where each epoch began, as brokers do."""

    def __init__(self) -> None:
        super().__init__()
        self._elections: dict[tuple[str, int], list[tuple[int, int]]] = {}
        self._reopened: dict[tuple[str, int], list[Transaction]] = {}
        self.past: dict[tuple[str, int], PastLog] = {}
        """Logs as they were before the last election."""

        self.revives = True
        """Whether what was aborted may be committed where the marker was lost: with its writer's next transaction."""

    def recreate_topic(self, topic: str) -> None:
        """Deletes a topic and creates it again: empty, with another id, its leaders' epochs from the start."""
        places = [each for each in self.logs if each[0] == topic]
        for place in places:
            self.past[place] = self.shown(place)
        name, life = self.topic_ids[topic].rsplit("-", 1)
        self.topic_ids[topic] = f"{name}-{int(life) + 1}"
        for place in places:
            self.logs[place] = []
            self._elections.pop(place, None)
            self._reopened.pop(place, None)

    def elect(self, topic: str, partition: int, end: int | None = None) -> None:
        """Elects a leader, uncleanly where its log only reaches ``end``: what stood behind is gone.

        A transaction whose marker is among that is open again, until its writer ends one there.
        """
        place = topic, partition
        log = self.logs[place]
        self.past[place] = self.shown(place)
        end = len(log) if end is None else end
        lost, log[end:] = log[end:], []
        for ended in (each for marker in lost for each in marker.ends):
            again = Transaction(was=ended.state)
            kept = [entry for entry in log if entry.transaction is ended]
            for entry in kept:
                entry.transaction = again
            if kept:
                self._reopened.setdefault(place, []).append(again)
        began = [each for each in self._elections.get(place, ()) if each[1] < end]
        self._elections[place] = [*began, (self.epoch_of(topic, partition) + 1, end)]

    def shown(self, place: tuple[str, int]) -> PastLog:
        """A log as its leader shows it now."""
        stable, epoch = self.stable_end(*place), self.epoch_of(*place)
        return PastLog(self.topic_ids[place[0]], len(self.logs[place]), stable, epoch)

    def epoch_of(self, topic: str, partition: int) -> int:
        """The epoch of the leader now."""
        elections = self._elections.get((topic, partition))
        return elections[-1][0] if elections else self.leader_epoch

    def end_of_epoch(self, topic: str, partition: int, epoch: int) -> int:
        """Where the records of an epoch end in the log there is now, as OffsetForLeaderEpoch answers."""
        place = topic, partition
        later = (start for each, start in self._elections.get(place, ()) if each > epoch)
        return next(later, len(self.logs[place]))

    def mark(
        self,
        topic: str,
        partition: int,
        transaction: Transaction,
        writer: tuple[str, int] = ("", 0),
    ) -> None:
        """Writes the marker of a transaction that has ended, and of those that its writer had reopened there."""
        reopened = self._reopened.pop((topic, partition), [])
        for each in reopened:
            back = each.was == "aborted" and not self.revives
            each.state = "aborted" if back else transaction.state
        ends = (transaction, *reopened)
        self.append(topic, partition, Entry(None, ends=ends, writer=(*writer, -1)))

    def reopened(self) -> list[tuple[str, int]]:
        """Where a transaction is open whose marker was lost."""
        return sorted(self._reopened)
