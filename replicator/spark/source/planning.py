"""From options to ranges: the driver asks the cluster once, tasks then read exactly that."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from replicator.errors import InputError, NotFoundError, SourceDataLostError
from replicator.identifiers import TopicPartition
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.settings import Isolation
from replicator.spark.base.ranges import (
    EARLIEST,
    LATEST,
    PACKED_RECORDS,
    Range,
    packed,
    ranges_between,
    split,
)
from replicator.spark.source.options import SourceOptions
from replicator.spark.source.positions import Position, Times, Word

CLIENT_ID = "replicator-spark"
TIMEOUT_SECONDS = 30.0

Late = Callable[[TopicPartition, int], InputError]
"""The error of a partition that has nothing as young as a time in milliseconds."""


def plan_ranges(options: SourceOptions) -> list[Range]:
    """What is to be read now.

    Raises:
        NotFoundError: a topic that was named does not exist.
        ReplicatorError: the cluster cannot be asked.
    """
    with ClusterAdmin(
        options.cluster, client_id=CLIENT_ID, timeout_seconds=TIMEOUT_SECONDS
    ) as admin:
        keys = partitions_of(admin, options)
        bounds = read_bounds(admin, keys, options.isolation)
        starts = resolved_starts(admin, keys, options, bounds, otherwise="earliest")
        ends = resolved_ends(admin, keys, options, bounds)
    return ranges_between(starts, ends)


def tasks_of(ranges: list[Range], options: SourceOptions) -> list[tuple[Range, ...]]:
    """What each task reads: small ranges together, but never more than the options allow."""
    most = options.most_per_task
    if options.least_tasks is not None:
        total = sum(one.size for one in ranges)
        fair = max(1, -(-total // options.least_tasks))
        most = fair if most is None else min(most, fair)
    if most is None:
        return packed(ranges)
    return packed(split(ranges, most), min(most, PACKED_RECORDS))


def partitions_of(admin: ClusterAdmin, options: SourceOptions) -> list[TopicPartition]:
    """The partitions that the options name.

    Raises:
        NotFoundError: a topic or partition that was named does not exist; names all of them.
    """
    there = admin.topic_partitions()
    if options.pattern is not None:
        wanted = [name for name in there if re.fullmatch(options.pattern, name)]
    elif options.partitions:
        missing = [key for key in options.partitions if key[1] >= there.get(key[0], 0)]
        _require([f"{topic}/{partition}" for topic, partition in missing], options)
        return sorted(set(options.partitions))
    else:
        wanted = list(options.topics)
        _require([name for name in wanted if name not in there], options)
    return [(name, partition) for name in sorted(wanted) for partition in range(there[name])]


def _require(missing: list[str], options: SourceOptions) -> None:
    if missing:
        raise NotFoundError(
            f"no such topic or partition: {', '.join(missing)}",
            subject=f"cluster:{options.cluster.alias}",
            remedy="Check the names in subscribe or assign.",
        )


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where the partitions begin and end now."""

    earliest: Mapping[TopicPartition, int]
    latest: Mapping[TopicPartition, int]


def read_bounds(admin: ClusterAdmin, keys: list[TopicPartition], isolation: Isolation) -> Bounds:
    """Asks for both ends of every partition."""
    return Bounds(
        admin.every_offset(keys, "earliest", isolation),
        admin.every_offset(keys, "latest", isolation),
    )


def resolved_starts(
    admin: ClusterAdmin,
    keys: list[TopicPartition],
    options: SourceOptions,
    bounds: Bounds,
    *,
    otherwise: Word,
) -> dict[TopicPartition, int]:
    """Where reading begins, ``otherwise`` where the options name no place; offsets that are gone are moved to the oldest when that is allowed.

    Raises:
        InputError: a place is named of a partition that is not read.
        SourceDataLostError: a log ends before it.
    """
    wanted: Position = otherwise if options.start is None else options.start
    late = _late(options) if options.absent_time_is_error else None
    _require_read(keys, wanted, options, "starting")
    found = _resolved(admin, keys, wanted, bounds, unnamed=EARLIEST, late=late)
    if options.lost_is_error:
        require_reached(found, bounds.latest, options)
        return found
    return {key: max(start, bounds.earliest[key]) for key, start in found.items()}


def require_reached(
    positions: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    options: SourceOptions,
) -> None:
    """Refuses to read on in silence where a log is shorter than what was read of it.

    Raises:
        SourceDataLostError: a log ends before a position; the topic was created again, or records were lost.
    """
    short = [
        f"{key[0]}/{key[1]} ends at {ends[key]}, below {position}"
        for key, position in positions.items()
        if key in ends and ends[key] < position
    ]
    if short:
        raise SourceDataLostError(
            "; ".join(short[:5]),
            subject=f"cluster:{options.cluster.alias}",
            remedy="The topic was created again or lost records. Choose where to begin with "
            "startingOffsets, or set failOnDataLoss to false.",
        )


def resolved_ends(
    admin: ClusterAdmin, keys: list[TopicPartition], options: SourceOptions, bounds: Bounds
) -> dict[TopicPartition, int]:
    """Where reading ends: never behind what can be read now.

    Raises:
        InputError: a place is named of a partition that is not read.
    """
    wanted: Position = "latest" if options.end is None else options.end
    _require_read(keys, wanted, options, "ending")
    found = _resolved(admin, keys, wanted, bounds, unnamed=LATEST, late=None)
    return {key: min(end, bounds.latest[key]) for key, end in found.items()}


def _require_read(
    keys: list[TopicPartition], wanted: Position, options: SourceOptions, side: str
) -> None:
    """A wrong name must not mean that a partition is read from its beginning, or to its end."""
    if isinstance(wanted, Times):
        option, named = f"{side}OffsetsByTimestamp", wanted.by_partition
    elif isinstance(wanted, Mapping):
        option, named = f"{side}Offsets", wanted
    else:
        return
    unread = sorted(set(named).difference(keys))
    if unread:
        places = ", ".join(f"{topic}/{partition}" for topic, partition in unread[:5])
        more = f" and {len(unread) - 5} more" if len(unread) > 5 else ""
        raise InputError(
            f"{option} names {places}{more}, which the query does not read",
            subject=f"cluster:{options.cluster.alias}",
            remedy="Check the names there, and in subscribe, subscribePattern or assign.",
        )


def _resolved(
    admin: ClusterAdmin,
    keys: list[TopicPartition],
    wanted: Position,
    bounds: Bounds,
    *,
    unnamed: int,
    late: Late | None,
) -> dict[TopicPartition, int]:
    """Offsets of all keys; ``unnamed`` is for those that the position does not name."""
    places: Mapping[TopicPartition, int] = {}
    if isinstance(wanted, int):
        places = _at_times(admin, dict.fromkeys(keys, wanted), bounds, late)
    elif isinstance(wanted, Times):
        times = {key: at for key, at in wanted.by_partition.items() if key in bounds.latest}
        places = _at_times(admin, times, bounds, late)
    elif isinstance(wanted, str):
        unnamed = EARLIEST if wanted == "earliest" else LATEST
    elif wanted is not None:
        places = wanted
    asked = {key: places.get(key, unnamed) for key in keys}
    ends = {EARLIEST: bounds.earliest, LATEST: bounds.latest}
    return {key: ends[asked[key]][key] if asked[key] in ends else asked[key] for key in keys}


def _at_times(
    admin: ClusterAdmin, times: Mapping[TopicPartition, int], bounds: Bounds, late: Late | None
) -> dict[TopicPartition, int]:
    """The first record of each that is not older; where none is that young, the log's end or an error."""
    found: dict[TopicPartition, int] = {}
    for at in set(times.values()):
        keys = [key for key, wanted in times.items() if wanted == at]
        for key, offset in admin.every_offset(keys, at, "read_committed").items():
            if offset < 0 and late is not None:
                raise late(key, at)
            found[key] = bounds.latest[key] if offset < 0 else offset
    return found


def _late(options: SourceOptions) -> Late:
    def error(key: TopicPartition, at_ms: int) -> InputError:
        return InputError(
            f"{key[0]}/{key[1]} has no record at or after {at_ms}",
            subject=f"cluster:{options.cluster.alias}",
            remedy="Choose an earlier time, or startingOffsetsByTimestampStrategy latest.",
        )

    return error
