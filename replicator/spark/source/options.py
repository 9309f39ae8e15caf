"""Options of ``replicator-kafka``: read once, all that is wrong said at once.

A cluster is named by its alias in a topology file, and then its secrets are references that each
task resolves for itself; or by bootstrap servers, which is for clusters that need no secrets.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from replicator.errors import InputError
from replicator.identifiers import TopicPartition
from replicator.kafka.clients.settings import Isolation
from replicator.spark.base.client_options import PREFIX, READER, client_settings
from replicator.spark.base.cluster_option import read_cluster
from replicator.spark.source.positions import Position, read_position
from replicator.topology.plan import ClusterPlan

KNOWN = (
    "assign", "bootstrapServers", "cluster", "endingOffsets", "endingOffsetsByTimestamp",
    "endingTimestamp", "failOnDataLoss", "includeHeaders", "isolation", "maxOffsetsPerTrigger",
    "maxRecordsPerPartition", "minPartitions", "startingOffsets", "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy", "startingTimestamp", "subscribe", "subscribePattern",
    "topology",
)  # fmt: skip
_WITHOUT_COUNTERPART = {
    "fetchoffset.numretries": "offsets are asked for again until they answer or 30 s have passed",
    "fetchoffset.retryintervalms": "offsets are asked for again until they answer or 30 s have passed",
    "groupidprefix": "no consumer group is used",
    "kafkaconsumer.polltimeoutms": "a range that gives nothing for 60 s fails by itself",
    "maxtriggerdelay": "a micro-batch takes what there is; use a trigger with a longer interval",
    "minoffsetspertrigger": "a micro-batch takes what there is; use a trigger with a longer interval",
}
_ISOLATIONS: tuple[Isolation, ...] = ("read_committed", "read_uncommitted")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What is to be read from where.

    Attributes:
        cluster: how to connect; references to secrets only.
        topics: by name.
        pattern: topics by regular expression instead, matched against the whole name.
        partitions: single partitions instead.
        start: the first offsets or times; None is the earliest for a batch, the latest for a stream.
        end: the first offsets or times that are not read; None is the latest at planning.
        isolation: whether open and aborted transactions are left out.
        lost_is_error: whether offsets that are gone fail the read.
        most_per_task: of one task; splits partitions. None reads each partition in one task, in order.
        least_tasks: so many tasks at least, where there is enough to read; splits partitions.
        most_per_trigger: records of one micro-batch; None is all there are.
        with_headers: whether there is a column of headers.
        absent_time_is_error: whether a time after the last record fails the read; else it is the end.
    """

    cluster: ClusterPlan
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()
    start: Position = None
    end: Position = None
    isolation: Isolation = "read_committed"
    lost_is_error: bool = True
    most_per_task: int | None = None
    least_tasks: int | None = None
    most_per_trigger: int | None = None
    with_headers: bool = True
    absent_time_is_error: bool = False


def read_options(given: Mapping[str, str]) -> SourceOptions:
    """Reads the options of a DataFrame reader; names are not case sensitive, as Spark has it.

    Raises:
        InputError: with everything that is wrong.
    """
    options = {name.lower(): value for name, value in given.items()}
    wrong: list[str] = []
    known = {name.lower() for name in KNOWN} | {"path"}
    for name in options:
        if name in _WITHOUT_COUNTERPART:
            wrong.append(f"'{name}' cannot be set: {_WITHOUT_COUNTERPART[name]}")
        elif name not in known and not name.startswith(PREFIX):
            wrong.append(f"unknown option '{name}'")
    settings = client_settings(options, READER, wrong)
    chosen = [name for name in ("subscribe", "subscribepattern", "assign") if options.get(name)]
    if len(chosen) != 1:
        wrong.append("give exactly one of subscribe, subscribePattern and assign")
    isolation = options.get("isolation") or options.get("kafka.isolation.level") or _ISOLATIONS[0]
    level = next((each for each in _ISOLATIONS if each == isolation), None)
    if level is None:
        wrong.append(f"isolation is read_committed or read_uncommitted, not '{isolation}'")
    start = read_position(options, "starting", wrong)
    end = read_position(options, "ending", wrong)
    strategy = options.get("startingoffsetsbytimestampstrategy", "latest").lower()
    if strategy not in {"error", "latest"}:
        wrong.append(f"startingOffsetsByTimestampStrategy is error or latest, not '{strategy}'")
    partitions: tuple[TopicPartition, ...] = ()
    if options.get("assign"):
        partitions = _assigned(options["assign"], wrong)
    pattern = options.get("subscribepattern")
    if pattern is not None and not _compiles(pattern):
        wrong.append(f"subscribePattern '{pattern}' is not a regular expression")
    most_per_task = _number(options, "maxRecordsPerPartition", wrong)
    most_per_trigger = _number(options, "maxOffsetsPerTrigger", wrong)
    least_tasks = _number(options, "minPartitions", wrong)
    lost_is_error = _flag(options, "failOnDataLoss", wrong)
    with_headers = _flag(options, "includeHeaders", wrong)
    place = read_cluster(options, wrong)
    if wrong or place is None or level is None:
        raise InputError(
            f"format replicator-kafka: {'; '.join(wrong)}",
            remedy="See docs/spark.md for its options.",
        )
    return SourceOptions(
        cluster=place.with_settings(settings),
        topics=tuple(name.strip() for name in options.get("subscribe", "").split(",") if name.strip()),
        pattern=pattern,
        partitions=partitions,
        start=start,
        end=end,
        isolation=level,
        lost_is_error=lost_is_error,
        most_per_task=most_per_task,
        least_tasks=least_tasks,
        most_per_trigger=most_per_trigger,
        with_headers=with_headers,
        absent_time_is_error=strategy == "error",
    )  # fmt: skip


def _assigned(text: str, wrong: list[str]) -> tuple[TopicPartition, ...]:
    try:
        found = json.loads(text)
        return tuple((topic, int(number)) for topic, numbers in found.items() for number in numbers)
    except (ValueError, TypeError, AttributeError):
        wrong.append('assign is JSON such as {"topic": [0, 1]}')
        return ()


def _number(options: Mapping[str, str], name: str, wrong: list[str]) -> int | None:
    text = options.get(name.lower())
    if text is None:
        return None
    if text.isdecimal() and int(text) > 0:
        return int(text)
    wrong.append(f"{name} is a positive number, not '{text}'")
    return None


def _flag(options: Mapping[str, str], name: str, wrong: list[str]) -> bool:
    text = options.get(name.lower(), "true").lower()
    if text not in {"true", "false"}:
        wrong.append(f"{name} is true or false, not '{text}'")
    return text != "false"


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True
