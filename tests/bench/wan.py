"""What both engines carry from a source, or to a target, 100 ms away, beside one plain connection over the same line.

``python tests/bench/wan.py [--far target] [--loss 0.01] [--rate BYTES] [--seconds N] [--broker-buffers] [--delivery at-least-once]
[--engines records] [--lanes N]`` (root, Linux); prints a line each. Rates are bounded by the line's; only ratios carry over. The brokers leave their socket buffers to the kernel, unless
``--broker-buffers`` asks for Kafka's default of 100 KB.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from contender import Contender, Job
from load import fill_with
from payload import Payload
from progress import end_offsets, topic_exists
from replicator_run import Replicator
from throughput import Say, remove_traces

from replicator.testing import LineQuality, LocalCluster, WanLine, wait_until

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from far_end import far_end, receiving_rate, sending_rate

Side = Literal["source", "target"]
ROUND_TRIP_SECONDS = 0.1
RATE = 8e6
PLAIN = "one plain connection"
KERNEL_BUFFERS = {"socket.send.buffer.bytes": "-1", "socket.receive.buffer.bytes": "-1"}
PARTITIONS = 16
"""A topic large enough to cross a site: partitions share out the connections, so fewer would bound them."""

BATCH_RECORDS = 15
"""16 KB, as producers come. The end of a fetch is half a batch that crosses the line in vain."""

_RECORD_BYTES = 1000
_START_SECONDS = 120.0
"""A client that hands over whole answers finds out in up to a minute how small they have to be."""
_STEP_SECONDS = 60.0
_RAMP_SECONDS = 3.0
_NO_LINE = LineQuality(round_trip_seconds=0.0)


@dataclass(frozen=True, slots=True)
class Result:
    """One contender at one loss, with this side far away; rates in bytes of values a second."""

    loss: float
    name: str
    far: Side = "source"
    bytes_per_second: float = 0.0
    of_cap: float = 0.0
    to_plain: float = 0.0
    failure: str = ""


def measure(
    *,
    near: LocalCluster,
    contenders: Sequence[Contender],
    losses: Sequence[float],
    seconds: float,
    say: Say,
    far: Side = "source",
    rate: float = RATE,
    config: dict[str, str] | None = None,
) -> list[Result]:
    """Boots a cluster at the far end of a line and has everybody copy from it, or to it, one after the other."""
    settings = KERNEL_BUFFERS if config is None else config
    results: list[Result] = []
    with WanLine(_NO_LINE) as line, tempfile.TemporaryDirectory() as folder:
        distant = LocalCluster(f"wan-{far}", place=line.place, config=settings)
        with distant, far_end(line, folder) as address:
            source, target = (distant, near) if far == "source" else (near, distant)
            records = round(rate * (seconds + 2 * _RAMP_SECONDS) * 1.2 / _RECORD_BYTES)
            payload = Payload(
                "", _RECORD_BYTES, records, partitions=PARTITIONS, batch_records=BATCH_RECORDS
            )
            topic = f"wan-{far}"
            fill_with(source, topic=topic, payload=payload)
            for loss in losses:
                line.change(
                    LineQuality(
                        round_trip_seconds=ROUND_TRIP_SECONDS,
                        loss=loss,
                        bytes_per_second=rate,
                        seed=7,
                    )
                )
                span = min(seconds, 6.0)
                plain = (
                    receiving_rate(address, span, ramp_seconds=2)
                    if far == "source"
                    else sending_rate(address, span)
                )
                results.append(Result(loss, PLAIN, far, plain, plain / rate, 1.0))
                say(_line(results[-1]))
                for contender in contenders:
                    job = Job(source=source, target=target, topics=(topic,), records=records)
                    try:
                        copied = _copied_rate(job, contender, seconds)
                        result = Result(
                            loss, contender.name, far, copied, copied / rate, copied / plain
                        )
                    except Exception as error:  # noqa: BLE001 # one that fails must not cost the others' figures
                        result = Result(loss, contender.name, far, failure=str(error))
                    results.append(result)
                    say(_line(result))
    return results


def _copied_rate(job: Job, contender: Contender, seconds: float) -> float:
    """Bytes of values a second, from a moment after the first record on, for so long or to the end."""
    (copy,) = job.target_topics
    running = contender.start(job)

    def committed() -> int:
        return end_offsets(job.target, copy, committed=True, partitions=PARTITIONS)

    def next_step(before: int) -> tuple[int, float]:
        """The first end behind this one, and when it was seen."""
        end = wait_until(
            lambda: now if (now := committed()) > before else 0,
            timeout_seconds=_STEP_SECONDS,
            describe=running.log_tail,
            interval_seconds=0.05,
        )
        return end, time.monotonic()

    try:
        wait_until(
            lambda: topic_exists(job.target, copy, PARTITIONS) and committed() > 0,
            timeout_seconds=_START_SECONDS,
            describe=running.log_tail,
            interval_seconds=0.05,
        )
        time.sleep(_RAMP_SECONDS)
        # From one commit to another: a lane far away commits every few seconds, which would count for nothing or for two.
        first, began = next_step(committed())
        done, ended = first, began
        while done < job.records and ended - began < seconds:
            done, ended = next_step(done)
        return (done - first) * _RECORD_BYTES / (ended - began)
    finally:
        running.end_at_once()
        remove_traces(job)


def _line(result: Result) -> str:
    if result.failure:
        return (
            f"  {result.far} far, loss {result.loss:.1%}  {result.name}: FAILED\n{result.failure}"
        )
    return (
        f"  {result.far} far, loss {result.loss:.1%}  {result.name:<52} {result.bytes_per_second / 1e6:6.2f} MB/s"
        f"  {result.of_cap:.2f} of the cap  {result.to_plain:.1f} x {PLAIN}"
    )


def main() -> None:
    """Measures without loss and with it, one engine after the other."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--far", choices=("source", "target"), default="source")
    parser.add_argument("--loss", type=float, default=0.01)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--broker-buffers", action="store_true", help="Kafka's default of 100 KB")
    parser.add_argument("--delivery", default="exactly-once")
    parser.add_argument("--engines", default="batches,records")
    parser.add_argument("--lanes", type=int, default=1)
    given = parser.parse_args()
    with LocalCluster("wan-near") as near:
        measure(
            near=near,
            far=given.far,
            contenders=[
                Replicator(engine=name, delivery=given.delivery, lanes=given.lanes)
                for name in given.engines.split(",")
            ],
            losses=(0.0, given.loss) if given.loss else (0.0,),
            seconds=given.seconds,
            say=lambda line: print(line, flush=True),
            rate=given.rate,
            config={} if given.broker_buffers else None,
        )


if __name__ == "__main__":
    main()
