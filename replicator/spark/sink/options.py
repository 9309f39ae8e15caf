"""Options and columns of a writer of ``replicator-kafka``: all that is wrong is said at once. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import StructType

from replicator.errors import InputError
from replicator.spark.base.client_options import PREFIX, WRITER, client_settings
from replicator.spark.base.cluster_option import read_cluster
from replicator.topology.plan import ClusterPlan

KNOWN = ("bootstrapServers", "cluster", "topic", "topology", "transactionSeconds", "waitSeconds")
_READ_ALONE = ("checkpointLocation", "includeHeaders", "path", "queryName")
"""Spark hands a writer what was meant for the query, too."""

_HEADERS = "array<struct<key:string,value:binary>>"
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": (_HEADERS,),
    "timestamp": ("timestamp",),
}
TRANSACTION_SECONDS, MOST_TRANSACTION_SECONDS = 300, 900
WAIT_SECONDS = 120
MAX_REQUEST_BYTES = 1_048_588


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Where rows go.

    Attributes:
        cluster: how to connect; references to secrets only.
        topology: whose name the topic of progress and transactional ids carry.
        topic: of rows without one of their own; empty where each has a column for it.
        transaction_seconds: how long one task's transaction may take.
        wait_seconds: how long a task waits for a cluster that does not answer.
        max_request_bytes: the largest record, as the target's topics take it.
    """

    cluster: ClusterPlan
    topology: str
    topic: str
    transaction_seconds: int
    max_request_bytes: int
    wait_seconds: int = WAIT_SECONDS


def read_sink_options(given: Mapping[str, str], schema: StructType) -> SinkOptions:
    """Reads the options of a DataFrame writer and checks the columns it is given.

    Raises:
        InputError: with everything that is wrong.
    """
    options = {name.lower(): value for name, value in given.items()}
    wrong: list[str] = []
    known = {name.lower() for name in (*KNOWN, *_READ_ALONE)}
    wrong += [
        f"unknown option '{name}'"
        for name in options
        if name not in known and not name.startswith(PREFIX)
    ]
    settings = client_settings(options, WRITER, wrong)
    topic = options.get("topic", "")
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    if "value" not in types:
        wrong.append("there is no column 'value'")
    if not topic and "topic" not in types:
        wrong.append("give the option topic, or a column 'topic'")
    for name, kind in types.items():
        if name not in COLUMNS:
            wrong.append(f"column '{name}' is none of {', '.join(COLUMNS)}; select those you want")
        elif kind not in COLUMNS[name]:
            wrong.append(f"column '{name}' is {kind}, not {' or '.join(COLUMNS[name])}")
    seconds = _number(options, "transactionSeconds", TRANSACTION_SECONDS, wrong)
    if seconds > MOST_TRANSACTION_SECONDS:
        wrong.append(
            f"transactionSeconds is {MOST_TRANSACTION_SECONDS} at most, as brokers have it"
        )
    wait = _number(options, "waitSeconds", WAIT_SECONDS, wrong)
    most = _number(options, "kafka.max.request.size", MAX_REQUEST_BYTES, wrong)
    place = read_cluster(options, wrong)
    if wrong or place is None:
        raise InputError(
            f"format replicator-kafka: {'; '.join(wrong)}",
            remedy="See docs/spark.md for its options.",
        )
    return SinkOptions(place.with_settings(settings), place.topology, topic, seconds, most, wait)


def _number(options: Mapping[str, str], name: str, default: int, wrong: list[str]) -> int:
    text = options.get(name.lower(), str(default))
    if text.isdecimal() and int(text) > 0:
        return int(text)
    wrong.append(f"{name} is a positive number, not '{text}'")
    return default
