"""A fast load whose records carry numbers: too many to be judged one by one, so they are counted.

Each partition gets 0, 1, 2 and so on; the copies must be the same numbers, in order, each once.
"""

import struct
import threading
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from replicator.testing import LocalCluster, wait_until

PARTITIONS = 4
_NUMBER = struct.Struct(">q92x")  # 100 bytes
_STEP_SECONDS = 0.05


class CountedLoad:
    """Writes to a topic of its own making until stopped; ``judge`` reads all copies.

    Args:
        source: where it writes.
        target: where the copies are, under the same name.
        topic: is created.
        rate: records a second.
    """

    def __init__(
        self, source: LocalCluster, target: LocalCluster, topic: str, *, rate: float
    ) -> None:
        self._target, self._topic, self._rate = target, topic, rate
        source.create_topic(topic, partitions=PARTITIONS)
        self._producer = Producer(
            {
                **source.client_settings(),
                "enable.idempotence": True,
                "linger.ms": 20,
                "queue.buffering.max.messages": 1_000_000,
                "message.timeout.ms": 0,
                "delivery.report.only.error": True,
                "log_level": 0,
            }
        )
        self.written = [0] * PARTITIONS
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="counted-load", daemon=True)

    def start(self) -> None:
        """Begins to write."""
        self._thread.start()

    def stop(self) -> None:
        """Ends; everything written is acknowledged then."""
        self._stopping.set()
        self._thread.join(60.0)
        assert self._producer.flush(60.0) == 0

    def judge(self) -> dict[str, int]:
        """Reads every copy; fails where a number is missing, comes twice, or out of order."""
        wait_until(
            lambda: self._ends() is not None,
            timeout_seconds=60,
            interval_seconds=1.0,
            describe="the last counted records to arrive",
        )
        consumer = self._consumer("read_committed")
        expected = [0] * PARTITIONS
        wrong: list[str] = []
        consumer.assign(
            [TopicPartition(self._topic, p, OFFSET_BEGINNING) for p in range(PARTITIONS)]
        )
        deadline = time.monotonic() + 120
        try:
            while expected != self.written and not wrong:
                assert time.monotonic() < deadline, f"read {expected} of {self.written}"
                for message in consumer.consume(10_000, 1.0):
                    if message.error() is not None:
                        assert message.error().code() == KafkaError._PARTITION_EOF
                        continue
                    partition = message.partition()
                    (number,) = _NUMBER.unpack(message.value())
                    if number != expected[partition]:
                        wrong.append(f"{partition}: {number} instead of {expected[partition]}")
                    expected[partition] = number + 1
            assert not wrong, wrong[:10]
            assert [m for m in consumer.consume(1, 2.0) if m.error() is None] == []
        finally:
            consumer.close()
        return {"written": sum(self.written), "lost": 0, "doubled": 0}

    def _ends(self) -> list[int] | None:
        """Where the copies end, once none is missing; markers take offsets as well."""
        consumer = self._consumer("read_committed")
        try:
            ends = [
                consumer.get_watermark_offsets(TopicPartition(self._topic, p), timeout=20)[1]
                for p in range(PARTITIONS)
            ]
        finally:
            consumer.close()
        return ends if all(map(int.__ge__, ends, self.written)) else None

    def _consumer(self, isolation: str) -> Consumer:
        return Consumer(
            {
                **self._target.client_settings(),
                "group.id": "counted",
                "enable.auto.commit": False,
                "isolation.level": isolation,
                "log_level": 0,
            }
        )

    def _run(self) -> None:
        began, sent = time.monotonic(), 0
        while not self._stopping.wait(_STEP_SECONDS):
            due = int((time.monotonic() - began) * self._rate)
            for number in range(sent, due):
                partition = number % PARTITIONS
                value = _NUMBER.pack(self.written[partition])
                self._producer.produce(self._topic, value, partition=partition)
                self.written[partition] += 1
            sent = due
            self._producer.poll(0)
