"""Writes at a steady rate with the time of writing in every record; runs as its own process.

``paced_writer.py BOOTSTRAP TOPIC PARTITIONS RATE SIZE``: until SIGTERM. A record begins with the
nanoseconds of the wall clock, 8 bytes, big-endian; source and reader share the machine, so they
share the clock.
"""

import signal
import struct
import sys
import time
from pathlib import Path
from types import FrameType

from confluent_kafka import Producer
from contender import Running, launch
from payload import texts

from replicator.testing import LocalCluster

_TICK_SECONDS = 0.001
STAMP = struct.Struct(">Q")


def start_writer(
    cluster: LocalCluster,
    *,
    topic: str,
    partitions: int,
    rate_per_second: int,
    size_bytes: int,
    directory: Path,
) -> Running:
    """Starts the program below."""
    command: list[str | Path] = [
        sys.executable,
        Path(__file__),
        cluster.bootstrap_servers[0],
        topic,
    ]
    command += [str(partitions), str(rate_per_second), str(size_bytes)]
    return launch(command, directory=directory, label=f"writer-{topic}")


def main() -> None:
    """Writes until told to stop."""
    bootstrap, topic = sys.argv[1:3]
    partitions, rate, size = map(int, sys.argv[3:6])
    bodies = [body[STAMP.size :] for body in texts(size_bytes=size)]
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 0, "queue.buffering.max.messages": 1_000_000}
    )
    running = True

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal running
        running = False

    signal.signal(signal.SIGTERM, stop)
    began = time.monotonic()
    sent = 0
    while running:
        due = int((time.monotonic() - began) * rate)
        while sent < due:
            body = STAMP.pack(time.time_ns()) + bodies[sent % len(bodies)]
            producer.produce(topic, body, partition=sent % partitions)
            sent += 1
        producer.poll(0)
        time.sleep(_TICK_SECONDS)
    producer.flush(10)


if __name__ == "__main__":
    main()
