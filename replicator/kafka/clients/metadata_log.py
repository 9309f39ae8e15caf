"""What a client has learned of the logs it works with, from the library's log for metadata.

librdkafka (checked: 2.16) calls nobody when a partition gets another leader, or a topic another id. It writes a line for
each partition of an answer with metadata, and asks for that when it loses a broker: so before anything is written under
another leader than before, unless that one was told with a refusal, as clean elections are. Lines are served with ``poll``.
"""

import re

from replicator.identifiers import TopicPartition
from replicator.kafka.clients.settings import Config

ASKED = "metadata"
"""What the library is asked to log; its log for topics has a line per partition of each transaction."""

_ID = re.compile(r"Topic (\S+) changed id from \S+ to (\S+)$")
_LEADER = re.compile(r"Topic (\S+) \[(\d+)\] Leader -?\d+ Epoch (\d+)$")


def topic_id_in(line: str) -> tuple[str, str] | None:
    """The topic and its id, as Kafka writes ids, where the line tells one."""
    found = _ID.search(line)
    return None if found is None else (found[1], found[2].replace("+", "-").replace("/", "_"))


class MetadataLog:
    """Of one client; used by the thread that polls it."""

    def __init__(self) -> None:
        self._epochs: dict[TopicPartition, int] = {}
        self._ids: dict[str, str] = {}

    @staticmethod
    def settings() -> Config:
        """What the client is configured with to write the lines."""
        return {"debug": ASKED, "log_level": 7}

    def take(self, line: str) -> None:
        """Takes a line of that log in."""
        leader = _LEADER.search(line)
        if leader is not None:
            self._epochs[leader[1], int(leader[2])] = int(leader[3])
            return
        told = topic_id_in(line)
        if told is not None:
            self._ids[told[0]] = told[1]

    def epoch(self, place: TopicPartition) -> int:
        """The epoch of the partition's leader, -1 where it is not known."""
        return self._epochs.get(place, -1)

    def topic_id(self, topic: str) -> str:
        """The topic's id, empty where it is not known."""
        return self._ids.get(topic, "")
