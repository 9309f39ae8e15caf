"""Reading the settings of many topics, again and again.

confluent-kafka answers with an object per setting, made in Python: 46 ms of CPU for 200 topics (2.16).
Here the response is decoded in 18 ms, and not at all while its bytes are those of the last time.
"""

import time
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from replicator.errors import ReplicatorError
from replicator.policy.copies.topic_config import ConfigValue
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.connection import BrokerConnection
from replicator.wire.connection.errors import code_error
from replicator.wire.connection.leader import any_broker
from replicator.wire.connection.protocol import DescribeConfigsRequest, DescribeConfigsResponse

_NEWEST = 4
_TOPIC = 2
_SET_ON_TOPIC = 1
_NOT_FOUND = 3
_AT_ONCE = 200
_MOST_KEPT = 50
"""Answers about so many chunks are remembered: 10,000 topics."""

_MOST_DIFFERENT = 1_000
"""Sets of settings that are remembered; nearly all topics of a cluster have one of very few."""

_CORRELATION = bytes(4)

OfTopic = Mapping[str, ConfigValue]
Settings = dict[str, OfTopic]
"""By topic; topics with equal settings share one object."""

_Names = tuple[str, ...]


class TopicSettings:
    """Reads settings of one cluster's topics; keeps its connection and the last answers. For one thread."""

    def __init__(self, cluster: ClusterPlan, *, client_id: str) -> None:
        self._cluster = cluster
        self._client_id = client_id
        self._last: dict[_Names, tuple[bytes, Settings]] = {}
        self._different: dict[tuple[Any, ...], OfTopic] = {}
        self._connection: BrokerConnection | None = None

    def read(self, names: Iterable[str], *, timeout_seconds: float = 10.0) -> Settings:
        """All settings of the topics, defaults included; names that do not exist are absent.

        Raises:
            NotAuthorizedError: our user lacks DESCRIBE_CONFIGS on one of them.
            ReplicatorError: the cluster cannot be reached, or refuses our login.
        """
        wanted = sorted(set(names))
        chunks = [tuple(wanted[at : at + _AT_ONCE]) for at in range(0, len(wanted), _AT_ONCE)]
        if not chunks:
            return {}
        deadline = time.monotonic() + timeout_seconds
        if self._connection is not None:
            try:
                return self._read(self._connection, chunks, deadline)
            except ReplicatorError:
                self.close()  # a connection that was kept may be dead for any reason: a new one tells
        self._connection = any_broker(self._cluster, client_id=self._client_id, deadline=deadline)
        try:
            return self._read(self._connection, chunks, deadline)
        except ReplicatorError:
            self.close()
            raise

    def close(self) -> None:
        """Hangs up; the next read connects again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _read(
        self, connection: BrokerConnection, chunks: list[_Names], deadline: float
    ) -> Settings:
        found: Settings = {}
        while len(self._last) > _MOST_KEPT:
            del self._last[next(iter(self._last))]  # the one that was asked longest ago
        for chunk in chunks:
            version, raw = _ask(connection, chunk, deadline)
            digest = blake2b(raw, digest_size=16).digest()
            before = self._last.pop(chunk, None)
            answer = (
                before[1]
                if before is not None and before[0] == digest
                else self._decoded(version, raw)
            )
            self._last[chunk] = (digest, answer)
            found.update(answer)
        return found

    def _decoded(self, version: int, raw: bytes) -> Settings:
        answer = DescribeConfigsResponse.decode(_CORRELATION + raw, version=version, header=True)
        found: Settings = {}
        for topic in answer.results:
            if topic.error_code == _NOT_FOUND:
                continue
            if topic.error_code:
                raise code_error(
                    topic.error_code,
                    subject=f"cluster:{self._cluster.alias}",
                    doing=f"read the settings of topic {topic.resource_name}",
                    detail=topic.error_message or "",
                    right=f"DESCRIBE_CONFIGS on topic '{topic.resource_name}'",
                )
            found[topic.resource_name] = self._of_topic(topic.configs)
        return found

    def _of_topic(self, entries: Iterable[Any]) -> OfTopic:
        key = tuple(
            [(e.name, e.value, e.config_source, e.read_only, e.is_sensitive) for e in entries]
        )
        known = self._different.get(key)
        if known is None:
            if len(self._different) >= _MOST_DIFFERENT:
                self._different.clear()
            known = self._different[key] = {
                name: ConfigValue(
                    value=value,
                    is_default=source != _SET_ON_TOPIC,
                    read_only=read_only,
                    sensitive=sensitive,
                )
                for name, value, source, read_only, sensitive in key
            }
        return known


def _ask(connection: BrokerConnection, names: _Names, deadline: float) -> tuple[int, bytes]:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=_TOPIC, resource_name=name, configuration_keys=None
            )
            for name in names
        ],
        include_synonyms=False,
        include_documentation=False,
    )
    return connection.call_raw(request, newest=_NEWEST, deadline=deadline)
