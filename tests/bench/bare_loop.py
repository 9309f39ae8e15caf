"""The floor: a bare confluent-kafka loop with the hop header and a checkpoint per transaction.

No filters, no metrics, no recovery: what one thread with one consumer and one transactional producer
can do at all. Run as a program it copies one topic until it is told to stop.
"""

import argparse
import gc
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from contender import Job, Running, launch
from load import PARTITIONS

HEADER = "replicator-hops"
_TRANSACTION_SECONDS = 0.2
_BATCH = 500
_QUEUE_MESSAGES = 100_000


@dataclass(frozen=True, slots=True)
class BareLoop:
    """The floor as a contender."""

    name: str = "bare confluent-kafka loop, transactions"

    def start(self, job: Job) -> Running:
        """Creates the target topics (nobody else does) and starts the loop."""
        (topic,) = job.topics
        checkpoints = f"{job.alias}.checkpoints"
        job.target.create_topic(job.target_topic(topic), partitions=PARTITIONS)
        job.target.create_topic(checkpoints, config={"cleanup.policy": "compact"})
        command: list[str | Path] = [sys.executable, Path(__file__)]
        command += [job.source.bootstrap_servers[0], job.target.bootstrap_servers[0]]
        command += [job.alias, topic, job.target_topic(topic), checkpoints]
        return launch(command, directory=job.directory, label="bare-loop")


class Loop:
    """The loop itself."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._target = arguments.target_topic
        self._checkpoints = arguments.checkpoints
        self._prefixes = [
            f"{arguments.alias}/{arguments.topic}/{partition}/" for partition in range(PARTITIONS)
        ]
        self._positions: dict[int, int] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": arguments.source,
                "group.id": f"bare-{arguments.alias}",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "check.crcs": True,
                "fetch.wait.max.ms": 50,
                "fetch.queue.backoff.ms": 5,
                "max.partition.fetch.bytes": 4 * 1024 * 1024,
                "queued.min.messages": 20_000,
            }
        )
        self._producer = Producer(
            {
                "bootstrap.servers": arguments.target,
                "transactional.id": f"bare-{arguments.alias}",
                "linger.ms": 20,
                "batch.size": 1_000_000,
                "queue.buffering.max.messages": _QUEUE_MESSAGES,
            }
        )
        self._producer.init_transactions(30)
        self._consumer.assign(
            [TopicPartition(arguments.topic, partition, 0) for partition in range(PARTITIONS)]
        )

    def run(self, running: "Flag") -> None:
        """Copies until the flag falls."""
        producer = self._producer
        opened_at: float | None = None
        while running.up:
            messages = self._consumer.consume(_BATCH, 0.05)
            if messages:
                if opened_at is None:
                    producer.begin_transaction()
                    opened_at = time.monotonic()
                while len(producer) > _QUEUE_MESSAGES - 2 * _BATCH:
                    producer.poll(0.005)
                self._copy(messages)
                producer.poll(0)
            if opened_at is not None and time.monotonic() - opened_at >= _TRANSACTION_SECONDS:
                self._commit()
                opened_at = None
        producer.abort_transaction(10) if opened_at is not None else None
        self._consumer.close()

    def _copy(self, messages: list[Message]) -> None:
        produce = self._producer.produce
        name = HEADER
        header: dict[str, str | bytes | None] = {name: ""}  # reused: produce copies it
        current, offset, prefix = -1, -1, ""
        for message in messages:
            error = message.error()
            if error is not None:
                raise KafkaException(error)
            partition = message.partition()
            if partition is None or message.headers() is not None:
                raise RuntimeError("the source was not filled by this benchmark")
            if partition != current:
                if current >= 0:
                    self._positions[current] = offset + 1
                current, prefix = partition, self._prefixes[partition]
            offset = message.offset() or 0
            header[name] = f"{prefix}{offset}"
            produce(
                self._target,
                message.value(),
                message.key(),
                partition,
                None,
                None,
                message.timestamp()[1],
                header,
            )
        self._positions[current] = offset + 1

    def _commit(self) -> None:
        for partition, offset in self._positions.items():
            self._producer.produce(
                self._checkpoints, b'{"v":1,"offset":%d}' % offset, b"%d" % partition
            )
        self._producer.commit_transaction(30)


class Flag:
    """Up until SIGTERM."""

    def __init__(self) -> None:
        self.up = True
        signal.signal(signal.SIGTERM, self._fall)

    def _fall(self, _number: int, _frame: FrameType | None) -> None:
        self.up = False


def main() -> None:
    """Copies one topic."""
    parser = argparse.ArgumentParser()
    for name in ("source", "target", "alias", "topic", "target_topic", "checkpoints"):
        parser.add_argument(name)
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
    Loop(parser.parse_args()).run(Flag())


if __name__ == "__main__":
    main()
