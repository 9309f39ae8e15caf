"""What both engines carry from a source 100 ms away, beside one plain connection over the same line.

``python tests/bench/wan.py [--loss 0.01] [--rate BYTES] [--megabytes N] [--kernel-buffers]`` (root, Linux); prints a line each. Rates are
bounded by the line's; only ratios carry over.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from contender import Job
from load import fill
from progress import end_offsets, topic_exists
from replicator_run import Replicator

from replicator.testing import LineQuality, LocalCluster, WanLine, start_all, wait_until

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from far_end import far_end, receiving_rate

_RECORD_BYTES = 1000
_TIMEOUT_SECONDS = 300.0
_NO_LINE = LineQuality(round_trip_seconds=0.0)


def copied_rate(
    source: LocalCluster, target: LocalCluster, topic: str, contender: Replicator, records: int
) -> float:
    """Bytes of values a second, between the first tenth and the end."""
    job = Job(source=source, target=target, topics=(topic,))
    (copy,) = job.target_topics
    running = contender.start(job)
    try:

        def reached(share: float) -> float:
            wait_until(
                lambda: (
                    topic_exists(target, copy)
                    and end_offsets(target, copy, committed=True) >= share * records
                ),
                timeout_seconds=_TIMEOUT_SECONDS,
                describe=running.log_tail,
                interval_seconds=0.05,
            )
            return time.monotonic()

        began = reached(0.1)
        first = end_offsets(target, copy, committed=True)
        ended = reached(1.0)
        return (records - first) * _RECORD_BYTES / (ended - began)
    finally:
        running.stop()


def main() -> None:
    """Measures without loss and with it, one engine after the other."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--loss", type=float, default=0.01)
    parser.add_argument("--rate", type=float, default=8e6)
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--kernel-buffers", action="store_true", help="the brokers' buffers too")
    given = parser.parse_args()
    config = {"socket.send.buffer.bytes": "-1"} if given.kernel_buffers else {}
    with WanLine(_NO_LINE) as line, tempfile.TemporaryDirectory() as folder:
        source, target = (
            LocalCluster("wan-source", place=line.place, config=config),
            LocalCluster("wan-target"),
        )
        start_all([source, target])
        with source, target, far_end(line, folder) as address:
            written = {
                loss: fill(
                    source,
                    topic=f"loss-{number}",
                    records=given.megabytes * 1000 // (1 if not loss else 4),
                    size_bytes=_RECORD_BYTES,
                )
                for number, loss in enumerate((0.0, given.loss))
            }
            for number, loss in enumerate((0.0, given.loss)):
                line.change(
                    LineQuality(
                        round_trip_seconds=0.1, loss=loss, bytes_per_second=given.rate, seed=7
                    )
                )
                plain = receiving_rate(address, 10, ramp_seconds=2)
                _say(
                    f"loss {loss:.1%}  one plain connection  {plain / 1e6:.2f} MB/s  {plain / given.rate:.2f} of the cap"
                )
                for engine in ("batches", "records"):
                    contender = Replicator(engine=engine)
                    rate = copied_rate(source, target, f"loss-{number}", contender, written[loss])
                    _say(
                        f"loss {loss:.1%}  {contender.name}  {rate / 1e6:.2f} MB/s  {rate / given.rate:.2f} of the cap  "
                        f"{rate / plain:.1f} x one plain connection"
                    )


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
