"""Options of ``replicator-kafka``: read once, all that is wrong said at once.

A cluster is named by its alias in a topology file, and then its secrets are references that each
task resolves for itself; or by bootstrap servers, which is for clusters that need no secrets.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from replicator.errors import InputError
from replicator.identifiers import ClusterAlias, TopicPartition
from replicator.kafka.settings import Isolation
from replicator.spark.base.ranges import parse_offsets
from replicator.topology.load import require_plan, topology_path
from replicator.topology.plan import ClusterPlan

Offsets = Mapping[TopicPartition, int]
End = Offsets | int | None
"""One end of what is read: offsets by partition, a time in milliseconds, or None for all there is."""

KNOWN = (
    "assign", "bootstrapServers", "cluster", "endingOffsets", "endingTimestamp", "failOnDataLoss",
    "isolation", "kafka.bootstrap.servers", "kafka.isolation.level", "maxOffsetsPerTrigger",
    "maxRecordsPerPartition", "startingOffsets", "startingTimestamp", "subscribe",
    "subscribePattern", "topology",
)  # fmt: skip
_ISOLATIONS: tuple[Isolation, ...] = ("read_committed", "read_uncommitted")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What is to be read from where.

    Attributes:
        cluster: how to connect; references to secrets only.
        topics: by name.
        pattern: topics by regular expression instead, matched against the whole name.
        partitions: single partitions instead.
        start: the first offsets or time; None is the earliest there is.
        end: the first offsets or time that are not read; None is the latest at planning.
        isolation: whether open and aborted transactions are left out.
        lost_is_error: whether offsets that are gone fail the read.
        most_per_task: splits partitions; None reads each in one task, in order.
        most_per_trigger: records of one micro-batch; None is all there are.
    """

    cluster: ClusterPlan
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()
    start: End = None
    end: End = None
    isolation: Isolation = "read_committed"
    lost_is_error: bool = True
    most_per_task: int | None = None
    most_per_trigger: int | None = None


def read_options(given: Mapping[str, str]) -> SourceOptions:
    """Reads the options of a DataFrame reader; names are not case sensitive, as Spark has it.

    Raises:
        InputError: with everything that is wrong.
    """
    options = {name.lower(): value for name, value in given.items()}
    wrong: list[str] = []
    known = {name.lower() for name in KNOWN} | {"path"}
    wrong += [f"unknown option '{name}'" for name in options if name not in known]
    chosen = [name for name in ("subscribe", "subscribepattern", "assign") if options.get(name)]
    if len(chosen) != 1:
        wrong.append("give exactly one of subscribe, subscribePattern and assign")
    isolation = options.get("isolation") or options.get("kafka.isolation.level") or _ISOLATIONS[0]
    level = next((each for each in _ISOLATIONS if each == isolation), None)
    if level is None:
        wrong.append(f"isolation is read_committed or read_uncommitted, not '{isolation}'")
    start = _end(options, "starting", "earliest", wrong)
    end = _end(options, "ending", "latest", wrong)
    partitions: tuple[TopicPartition, ...] = ()
    if options.get("assign"):
        partitions = _assigned(options["assign"], wrong)
    pattern = options.get("subscribepattern")
    if pattern is not None and not _compiles(pattern):
        wrong.append(f"subscribePattern '{pattern}' is not a regular expression")
    most_per_task = _number(options, "maxRecordsPerPartition", wrong)
    most_per_trigger = _number(options, "maxOffsetsPerTrigger", wrong)
    cluster = _cluster(options, wrong)
    if wrong or cluster is None or level is None:
        raise InputError(
            f"format replicator-kafka: {'; '.join(wrong)}",
            remedy="See docs/spark.md for its options.",
        )
    return SourceOptions(
        cluster=cluster,
        topics=tuple(name.strip() for name in options.get("subscribe", "").split(",") if name.strip()),
        pattern=pattern,
        partitions=partitions,
        start=start,
        end=end,
        isolation=level,
        lost_is_error=options.get("failondataloss", "true").lower() != "false",
        most_per_task=most_per_task,
        most_per_trigger=most_per_trigger,
    )  # fmt: skip


def _cluster(options: Mapping[str, str], wrong: list[str]) -> ClusterPlan | None:
    servers = options.get("bootstrapservers") or options.get("kafka.bootstrap.servers")
    alias = options.get("cluster")
    if servers and alias:
        wrong.append("give cluster or bootstrapServers, not both")
    elif servers:
        return ClusterPlan(
            alias=ClusterAlias("bootstrap"),
            bootstrap_servers=tuple(server.strip() for server in servers.split(",")),
        )
    elif not alias:
        wrong.append("name a cluster of the topology with cluster, or give bootstrapServers")
    else:
        plan = require_plan(topology_path(options.get("topology")))
        try:
            return plan.cluster(alias)
        except KeyError:
            there = ", ".join(str(each.alias) for each in plan.clusters)
            wrong.append(f"the topology has no cluster '{alias}' (there are {there})")
    return None


def _end(options: Mapping[str, str], prefix: str, default: str, wrong: list[str]) -> End:
    offsets, timestamp = options.get(f"{prefix}offsets"), options.get(f"{prefix}timestamp")
    if offsets and timestamp:
        wrong.append(f"give {prefix}Offsets or {prefix}Timestamp, not both")
        return None
    if timestamp:
        if timestamp.isdecimal():
            return int(timestamp)
        wrong.append(f"{prefix}Timestamp is milliseconds since 1970, not '{timestamp}'")
        return None
    if not offsets or offsets == default:
        return None
    try:
        return parse_offsets(offsets, option=f"{prefix}Offsets")
    except InputError as error:
        wrong.append(error.paragraph().rstrip("."))
        return None


def _assigned(text: str, wrong: list[str]) -> tuple[TopicPartition, ...]:
    import json

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


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True
