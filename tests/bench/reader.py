"""Reads a target topic as users would (read-committed) and notes how old each record was.

It runs in a thread of this process, which otherwise sleeps while something is measured.
"""

import gc
import threading
import time
from bisect import bisect_left
from types import TracebackType
from typing import NamedTuple, Self

from confluent_kafka import Consumer
from load import PARTITIONS, tail
from paced_writer import STAMP

from replicator.testing import LocalCluster

_POLL_SECONDS = 0.1


class Arrival(NamedTuple):
    """One record: when it was read, how old it was then, and from where."""

    at_seconds: float
    age_seconds: float
    partition: int


class Reader:
    """Collects arrivals of one topic from now on; a context manager.

    Times are of ``time.time()``, so that they can be compared with those in the records.
    """

    def __init__(self, cluster: LocalCluster, *, topic: str, partitions: int = PARTITIONS) -> None:
        self._consumer: Consumer = tail(cluster, topics=[topic], partitions=partitions)
        self._partitions = partitions
        self._arrivals: list[Arrival] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bench-reader", daemon=True)

    def __enter__(self) -> Self:
        # A collection among hundreds of thousands of arrivals stops the reader for 0.3 s: a copier's worst gap, to look at.
        gc.disable()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        self._thread.join()
        self._consumer.close()
        gc.enable()

    def arrivals(self, *, since: float = 0.0) -> list[Arrival]:
        """Everything read at or after a time; in order."""
        return self._arrivals[bisect_left(self._arrivals, (since,)) :]

    def longest_silence(self, *, since: float) -> float:
        """The longest time, in seconds, in which nothing came from some partition."""
        last = dict.fromkeys(range(self._partitions), since)
        longest = 0.0
        for arrival in self.arrivals(since=since):
            longest = max(longest, arrival.at_seconds - last[arrival.partition])
            last[arrival.partition] = arrival.at_seconds
        return longest

    @property
    def newest(self) -> Arrival | None:
        """The last one."""
        return self._arrivals[-1] if self._arrivals else None

    def _run(self) -> None:
        # One by one: a batch call would wait for the batch.
        while not self._stopping.is_set():
            message = self._consumer.poll(_POLL_SECONDS)
            if message is None or message.error() is not None:
                continue
            now = time.time_ns()
            value, partition = message.value(), message.partition()
            if value is None or partition is None:
                raise RuntimeError("a record that the paced writer did not write")
            written = STAMP.unpack_from(value)[0]
            self._arrivals.append(Arrival(now / 1e9, (now - written) / 1e9, partition))
