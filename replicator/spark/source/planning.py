"""From options to ranges: the driver asks the cluster once, tasks then read exactly that."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from replicator.errors import NotFoundError, SourceDataLostError
from replicator.identifiers import TopicPartition
from replicator.kafka.admin import ClusterAdmin
from replicator.kafka.settings import Isolation
from replicator.spark.base.ranges import EARLIEST, LATEST, Range, ranges_between, split
from replicator.spark.source.options import End, SourceOptions

CLIENT_ID = "replicator-spark"
TIMEOUT_SECONDS = 30.0


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
        starts = resolved_starts(admin, keys, options, bounds)
        ends = resolved_ends(admin, keys, options, bounds)
    return split(ranges_between(starts, ends), options.most_per_task)


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
    admin: ClusterAdmin, keys: list[TopicPartition], options: SourceOptions, bounds: Bounds
) -> dict[TopicPartition, int]:
    """Where reading begins; offsets that are gone are moved to the oldest when that is allowed.

    Raises:
        SourceDataLostError: a log ends before it.
    """
    found = _resolved(admin, keys, options.start, bounds, EARLIEST)
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
    """Where reading ends: never behind what can be read now."""
    found = _resolved(admin, keys, options.end, bounds, LATEST)
    return {key: min(end, bounds.latest[key]) for key, end in found.items()}


def _resolved(
    admin: ClusterAdmin, keys: list[TopicPartition], wanted: End, bounds: Bounds, default: int
) -> dict[TopicPartition, int]:
    if isinstance(wanted, int):
        found = admin.every_offset(keys, wanted, "read_committed")
        # -1: nothing that young.
        return {key: bounds.latest[key] if found[key] < 0 else found[key] for key in keys}
    asked = {key: (wanted or {}).get(key, default) for key in keys}
    ends = {EARLIEST: bounds.earliest, LATEST: bounds.latest}
    return {key: ends[asked[key]][key] if asked[key] in ends else asked[key] for key in keys}
