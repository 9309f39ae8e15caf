"""Half an hour at full speed: memory stays flat, and nothing is lost, repeated or reordered.

``python tests/bench/soak.py [--minutes 30] [--engine batches] [--delivery exactly-once]``; exits with 1 where that is not so.
The writer goes as fast as the copier does. Brokers keep the last few hundred megabytes.
"""

import argparse
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from contender import Job, Running
from machine import command_line, facts
from payload import Payload
from replicator_run import TARGET_ALIAS, Replicator
from warm_up import warm_up

from replicator.testing import LocalCluster, start_all, wait_until

TOPIC = "soak"
PARTITIONS = 4
CHECKED = 0
"""The partition whose records are numbered and read one by one; all others are written as fast as it goes."""

CHECKED_PER_SECOND = 2_000
MOST_BEHIND = 400_000
"""Records of the other partitions that may wait for the copier: far less than what brokers keep."""

MOST_GROWTH = 1.05
"""Of the median of memory, from the first third behind the start to the last one."""

_CONFIG = {
    "log.retention.check.interval.ms": "5000",
    "log.retention.bytes": str(400 * 1024 * 1024),
    "log.segment.bytes": str(64 * 1024 * 1024),
    "log.segment.delete.delay.ms": "1000",
}
_SAMPLE_SECONDS = 5.0
_WARM_SHARE = 0.1


@dataclass
class Order:
    """What the reader of the checked partition has seen."""

    next: int = 0
    wrong: list[str] = field(default_factory=list)

    def see(self, number: int) -> None:
        """Every number comes once, in order."""
        if number != self.next:
            self.wrong.append(f"{number} came where {self.next} was due")
        self.next = number + 1


class Traffic:
    """The writer and the reader, in threads of their own."""

    def __init__(self, job: Job) -> None:
        self.written = [0] * PARTITIONS
        self.order = Order()
        self.failure: Exception | None = None
        self._job = job
        self._copied = 0
        self._ended = threading.Event()
        self._checked = Producer({**job.source.client_settings(), "linger.ms": 5})
        self._flood = Producer(
            {**job.source.client_settings(), "linger.ms": 50, "batch.size": 250 * 1024}
        )
        self._threads = [
            threading.Thread(target=self._guarded, args=(each,), daemon=True)
            for each in (self._write_checked, self._write_flood, self._read)
        ]

    def start(self) -> None:
        """Begins."""
        for thread in self._threads:
            thread.start()

    def ends(self, cluster: LocalCluster, topic: str) -> int:
        """Sum of the ends of the partitions that are not checked."""
        consumer = Consumer({**cluster.client_settings(), "group.id": "soak-ends"})
        try:
            return sum(
                _end(consumer, TopicPartition(topic, number))
                for number in range(PARTITIONS)
                if number != CHECKED
            )
        finally:
            consumer.close()

    def stop(self) -> None:
        """Stops writing, and reads what is still to come of the checked partition."""
        self._ended.set()
        for thread in self._threads[:2]:
            thread.join()
        self._checked.flush(60)
        self._flood.flush(60)
        self._threads[2].join()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 # told by the main thread
            self.failure = error
            self._ended.set()

    def _write_checked(self) -> None:
        began = time.monotonic()
        while not self._ended.wait(0.02):
            due = round((time.monotonic() - began) * CHECKED_PER_SECOND)
            for number in range(self.written[CHECKED], due):
                self._checked.produce(TOPIC, b"%d" % number, partition=CHECKED)
            self.written[CHECKED] = max(due, self.written[CHECKED])
            self._checked.poll(0)

    def _write_flood(self) -> None:
        run = [{"value": value} for value in Payload("", 100, 0).bodies()]
        topic = self._job.target_topics[0]
        others = [number for number in range(PARTITIONS) if number != CHECKED]
        while not self._ended.is_set():
            done = self.ends(self._job.target, topic)
            while sum(self.written[number] for number in others) < done + MOST_BEHIND:
                for number in others:
                    while len(self._flood) > 50_000:
                        self._flood.poll(0.01)
                    self._flood.produce_batch(TOPIC, run, partition=number)
                    self.written[number] += len(run)
                self._flood.poll(0)

    def _read(self) -> None:
        consumer = Consumer(
            {
                **self._job.target.client_settings(), "group.id": "soak-reader",
                "isolation.level": "read_committed", "auto.offset.reset": "error",
            }
        )  # fmt: skip
        consumer.assign([TopicPartition(self._job.target_topics[0], CHECKED, 0)])
        quiet_since = time.monotonic()
        try:
            while not self._ended.is_set() or self.order.next < self.written[CHECKED]:
                for message in consumer.consume(1_000, 0.2):
                    if message.error() is not None:
                        raise RuntimeError(message.error())
                    self.order.see(int(message.value() or b"-1"))
                    quiet_since = time.monotonic()
                if time.monotonic() - quiet_since > 60:
                    raise TimeoutError(f"nothing came for a minute behind {self.order.next - 1}")
        finally:
            consumer.close()


def soak(job: Job, running: Running, traffic: Traffic, *, seconds: float) -> list[str]:
    """Prints a line a minute; returns what is wrong."""
    began, samples = time.monotonic(), list[tuple[float, int]]()
    said, records, cpu = began, 0, 0.0
    while (now := time.monotonic()) - began < seconds and traffic.failure is None:
        if not running.alive:
            return [f"the worker has ended:\n{running.log_tail()}"]
        usage = running.tree.usage()
        samples.append((now - began, usage.rss_bytes))
        if now - said >= 60:
            done = traffic.ends(job.target, job.target_topics[0])
            moved, used = done - records, usage.cpu_seconds - cpu
            print(
                f"  minute {round((now - began) / 60):>3}  {moved / (now - said) / 1e3:8.1f} k rec/s"
                f"  {used / max(1, moved) * 1e6:.2f} us/rec  {usage.rss_bytes / 1e6:.0f} MB"
                f"  checked {traffic.order.next:,}, wrong {len(traffic.order.wrong)}",
                flush=True,
            )
            said, records, cpu = now, done, usage.cpu_seconds
        time.sleep(_SAMPLE_SECONDS)
    traffic.stop()
    wrong = list(traffic.order.wrong[:5])
    if traffic.failure is not None:
        wrong.append(repr(traffic.failure))
    if traffic.order.next != traffic.written[CHECKED]:
        wrong.append(f"{traffic.order.next} of {traffic.written[CHECKED]} numbered records came")
    wrong += _growth(samples, seconds)
    print(
        f"  written {sum(traffic.written):,}, of which {traffic.written[CHECKED]:,} were checked one by one; "
        f"memory {samples[-1][1] / 1e6:.0f} MB",
        flush=True,
    )
    return wrong


def _growth(samples: Sequence[tuple[float, int]], seconds: float) -> list[str]:
    warm = [size for at, size in samples if at >= _WARM_SHARE * seconds]
    if not warm:
        return ["it ended before memory could be judged"]
    third = max(1, len(warm) // 3)
    first, last = median(warm[:third]), median(warm[-third:])
    print(f"  memory: median {first / 1e6:.0f} MB first, {last / 1e6:.0f} MB last", flush=True)
    if last > MOST_GROWTH * first:
        return [f"memory grew from {first / 1e6:.0f} to {last / 1e6:.0f} MB"]
    return []


def _end(consumer: Consumer, place: TopicPartition) -> int:
    """Asks again while a partition has no leader: a broker alone is fenced for a moment when it is late."""
    until = time.monotonic() + 30
    while True:
        try:
            return int(consumer.get_watermark_offsets(place, timeout=30)[1])
        except KafkaException:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)  # between two questions to a broker, inside their deadline


def _led(cluster: LocalCluster, topic: str) -> bool:
    """Whether all partitions are there and have a leader: a question about others fails."""
    found = cluster.admin().list_topics(timeout=10).topics.get(topic)
    leaders = [] if found is None else [each.leader for each in found.partitions.values()]
    return len(leaders) == PARTITIONS and min(leaders) >= 0


def main() -> int:
    """Runs for so long, and says what is wrong."""
    parser = argparse.ArgumentParser(description="Full speed for long.")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--engine", choices=("batches", "records"), default="batches")
    parser.add_argument("--delivery", choices=("exactly-once", "at-least-once"), default="exactly-once")  # fmt: skip
    given = parser.parse_args()
    source, target = (
        LocalCluster(name, jvm="throughput", heap_megabytes=1024, config=_CONFIG)
        for name in ("soak-source", TARGET_ALIAS)
    )
    start_all([source, target])
    try:
        warm_up(source)
        warm_up(target)
        source.create_topic(TOPIC, partitions=PARTITIONS)
        job = Job(source=source, target=target, topics=(TOPIC,))
        running = Replicator(given.delivery, lanes="auto", engine=given.engine).start(job)
        try:
            there = job.target_topics[0]
            wait_until(
                lambda: _led(target, there),
                timeout_seconds=60,
                describe=running.log_tail,
            )
            traffic = Traffic(job)
            traffic.start()
            wrong = soak(job, running, traffic, seconds=60 * given.minutes)
        finally:
            running.stop()
    finally:
        source.stop()
        target.stop()
    print("\n".join(["wrong:", *wrong]) if wrong else "nothing wrong")
    print(facts(command=command_line(), full=True))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
