"""What follows from the length of the lines between a lane and its two clusters. Pure.

Up to NEAR_SECONDS of round trip everything stays as it is: nothing may get worse inside one site.
Socket buffers are left to the kernel, which sizes them by itself; asking for a size switches that off.
"""

import math
from dataclasses import dataclass

NEAR_SECONDS = 0.005
"""Round trips up to here are those of one site or one region."""

OFFER_BBR = "modprobe tcp_bbr; sysctl net.ipv4.tcp_allowed_congestion_control='reno cubic bbr'"
"""What a host takes for a process without rights to have its connections send by BBR."""

SECONDS_PER_CONNECTION = 0.006
MOST_CONNECTIONS = 16
"""A lossy connection carries a rate that falls with its round trip; several carry the sum."""

MOST_BYTES = 64 * 1024 * 1024
"""What all connections to one broker of the source may have asked for together."""

FIRST_FETCH_BYTES, LEAST_FETCH_BYTES = 1024 * 1024, 32 * 1024
FETCH_SECONDS = 2.0
"""How long a fetch should take: longer wastes less of the line; a partition that brings nothing for 6 s is taken for one that stands still."""

COMMIT_ROUND_TRIPS = 40
"""A commit stands still for three to four round trips, so this many cost a tenth of the time at most."""

LONGEST_COMMIT_SECONDS = 10.0
FAR_CODEC = "lz4"
"""Of records that cross a long line one by one: every broker and client of the last ten years knows it, and it costs little CPU."""

JOINED_RECORDS, FAR_JOINED_RECORDS = 20, 2_000
"""Batches up to so many records are joined where they wait. A target far away takes five batches of a partition in a round trip."""

ASSUMED_BYTES_PER_SECOND = 60_000_000
"""What a line may carry; the rate itself is not measured while copying."""


@dataclass(frozen=True, slots=True)
class LineSettings:
    """How to work over lines of one length.

    Attributes:
        connections: to each broker of the source, at most one per partition is of use.
        fetch_bytes: of one connection's fetch.
        partition_bytes: of one partition in a fetch.
        commit_interval_seconds: how long a busy lane goes on before it commits.
        first_fetch_bytes: of a connection's fetches until it is known what it carries.
        joined_records: up to how many records a batch is joined with others that wait for it.
        joins_ahead: whether the target's coordinator is asked before partitions are written to; far away
            that takes longer than what it saves.
        codec: of what the records engine writes.
    """

    connections: int
    fetch_bytes: int
    partition_bytes: int
    commit_interval_seconds: float
    first_fetch_bytes: int
    joined_records: int = JOINED_RECORDS
    joins_ahead: bool = True
    codec: str = "none"


def line_settings(
    *,
    source_seconds: float,
    target_seconds: float,
    fetch_bytes: int,
    partition_bytes: int,
    commit_interval_seconds: float,
) -> LineSettings:
    """From both round trips and the settings of a near line, which are never made smaller.

    Each connection of a long line fetches by itself, so there are only so many that all of them together
    hold MOST_BYTES.
    """
    interval, joined, codec = commit_interval_seconds, JOINED_RECORDS, "none"
    far = target_seconds > NEAR_SECONDS
    if far:
        codec = FAR_CODEC
        scaled = min(COMMIT_ROUND_TRIPS * target_seconds, LONGEST_COMMIT_SECONDS)
        interval, joined = max(interval, scaled), FAR_JOINED_RECORDS
    if source_seconds <= NEAR_SECONDS:
        return LineSettings(
            1, fetch_bytes, partition_bytes, interval, fetch_bytes, joined, not far, codec
        )
    under_way = round(source_seconds * ASSUMED_BYTES_PER_SECOND)
    connections = min(MOST_CONNECTIONS, math.ceil(source_seconds / SECONDS_PER_CONNECTION))
    partition = max(partition_bytes, min(under_way, fetch_bytes, MOST_BYTES // connections))
    connections = max(1, min(connections, MOST_BYTES // partition))
    return LineSettings(
        connections, partition, partition, interval, FIRST_FETCH_BYTES, joined, not far, codec
    )


def fetch_bytes_at(size: int, seconds: float) -> int:
    """How much a connection's next fetch should ask for, after one that brought ``size`` bytes in so long."""
    return max(LEAST_FETCH_BYTES, round(size / max(seconds, 1e-3) * FETCH_SECONDS))
