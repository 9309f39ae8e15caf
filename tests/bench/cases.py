"""Who is measured, and what they copy. In order of importance: what does not fit into a run's time is left out from the end."""

from dataclasses import replace

import latency
from bare_loop import BareLoop
from contender import Contender
from mm2 import MirrorMaker2
from payload import Payload
from replicator_run import Replicator

YARDSTICK = MirrorMaker2("tuned")
MM2_DEFAULT = MirrorMaker2("default")
MM2_EXACTLY_ONCE = MirrorMaker2("default", "exactly-once")
MM2_TUNED_EXACTLY_ONCE = MirrorMaker2("tuned", "exactly-once")

BATCHES = Replicator("exactly-once", engine="batches")
BATCHES_AT_LEAST_ONCE = Replicator("at-least-once", engine="batches")
BATCHES_AUTO_LANES = Replicator("exactly-once", lanes="auto", engine="batches")
BATCHES_8_LANES = replace(BATCHES, lanes=8)
BATCHES_NAMED = replace(BATCHES, worker_id="bench-0")
RECORDS = Replicator("exactly-once", engine="records")
RECORDS_AT_LEAST_ONCE = Replicator("at-least-once", engine="records")
RECORDS_AUTO_LANES = Replicator("exactly-once", lanes="auto", engine="records")
RECORDS_NAMED = replace(RECORDS, worker_id="bench-0")

SMALL = Payload("100 B", 100, 6_000_000)
LARGE = Payload("1 KB", 1_000, 1_000_000)
TLS = Payload("100 B, TLS on both sides", 100, 4_000_000, secured=True)
_JSON = Payload("", 1_000, 1_200_000, json=True)
# So many documents make a batch of that size under that codec.
JSON = tuple(
    replace(_JSON, label=f"1 KB JSON, {codec}, {size} batches", codec=codec, batch_records=records)
    for codec, size, records in (
        ("zstd", "16 KB", 90),
        ("lz4", "200 KB", 840),
        ("zstd", "200 KB", 1_100),
        ("lz4", "16 KB", 64),
    )
)
JSON_OTHERS = tuple(
    replace(_JSON, label=f"1 KB JSON, {codec}, 16 KB batches", codec=codec, batch_records=records)
    for codec, records in (("snappy", 40), ("gzip", 90))
)
SMALL_BATCHES = Payload("100 B, 10-record batches", 100, 600_000, batch_records=10)
TINY_BATCHES = tuple(
    Payload(f"100 B, {size}-record batches", 100, 300_000, batch_records=size) for size in (1, 3)
)
"""What producers without linger write."""
PARTITIONS_64 = Payload("100 B, 64 partitions", 100, 4_000_000, partitions=64)
PARTITIONS_1600 = Payload("100 B, 1,600 partitions", 100, 8_000_000, partitions=1_600)
PARTITION_1 = Payload("100 B, 1 partition", 100, 4_000_000, partitions=1)

SLOW = latency.Pace("1 k rec/s of 100 B", 1_000, 100)
FAST = latency.Pace("10 k rec/s of 1 KB", 10_000, 1_000)

_ALWAYS: tuple[Contender, ...] = (YARDSTICK, RECORDS, BATCHES)
_OTHERS: tuple[Contender, ...] = (
    BATCHES_AT_LEAST_ONCE,
    BareLoop(),
    MM2_DEFAULT,
    MM2_TUNED_EXACTLY_ONCE,
)
_ONLY_FULL: tuple[Contender, ...] = (RECORDS_AT_LEAST_ONCE, RECORDS_AUTO_LANES)

_BY_NAME_ONLY: tuple[tuple[Payload, tuple[Contender, ...]], ...] = (
    *((payload, _ALWAYS) for payload in TINY_BATCHES),
    (PARTITIONS_1600, (YARDSTICK, BATCHES, BATCHES_8_LANES)),
)
"""Left out unless ``--payload`` asks, since their sources and targets take long to make."""


def throughput_cases(*, quick: bool, only: str = "") -> list[tuple[Payload, tuple[Contender, ...]]]:
    """Payloads, and who copies them; the first one is that of the headline. ``only``: a part of their labels."""
    headline = (*_ALWAYS, *_OTHERS, *(() if quick else _ONLY_FULL))
    others = [
        LARGE, JSON[0], JSON[1], TLS, SMALL_BATCHES, PARTITIONS_64, PARTITION_1, *JSON[2:],
        *(() if quick else JSON_OTHERS),
    ]  # fmt: skip
    found = [(SMALL, headline), *((payload, _ALWAYS) for payload in others)]
    if only:
        found += _BY_NAME_ONLY
    return [each for each in found if only in each[0].label]


def latency_contenders(*, quick: bool) -> list[Contender]:
    """Everybody whose delay is measured."""
    ours = [BATCHES_AT_LEAST_ONCE, BATCHES, RECORDS_AT_LEAST_ONCE, RECORDS]
    theirs = [MM2_DEFAULT, MM2_EXACTLY_ONCE, *(() if quick else (YARDSTICK,))]
    return [*ours, *theirs]


def contenders_of_three_brokers() -> list[Contender]:
    """Those whose transactions span brokers."""
    return [BATCHES, RECORDS, MM2_EXACTLY_ONCE]


def is_ours(contender: Contender) -> bool:
    """Whether it is the replicator."""
    return isinstance(contender, Replicator)
