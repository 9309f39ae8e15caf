"""Hearing from a consumer that a topic is another one now, before the first record of it arrives.

A topic that is deleted and created again under its name has another id. librdkafka (checked: 2.16)
then goes on at the old position and tells nobody; its own source has a remark that it should. Where
the new topic is already longer than that position, records would be skipped in silence. The one
place where it says anything is a line of its debug log for metadata. Fetch requests carry the id
(Kafka 3.1 and newer), so that line is written before the new topic is read, and it travels through
the same queue as the records: a consumer that polls meets the line first.

The log for topics has that line too, and fifteen times as many others (measured: 18.5 lines a partition at the start,
against 1.2). They are sorted into the queue one by one, each past all that wait there: a lane of 5,000 partitions
that did not poll for 15 s spent 20 s of CPU on it, and its client answered no broker meanwhile.
"""

import logging
from collections.abc import Callable

from replicator.kafka.clients.metadata_log import ASKED, topic_id_in
from replicator.kafka.clients.settings import LOGGER, Config

_DEBUG = "debug"


class TopicIdLogger:
    """Takes the place of a consumer's logger: hears of ids, hands real log lines on."""

    def __init__(self, on_topic_id: Callable[[str, str], None], *, everything: bool) -> None:
        self._on_topic_id = on_topic_id
        self._least = logging.NOTSET if everything else logging.WARNING

    def log(self, level: int, template: str, *arguments: object) -> None:
        """Called by the library from inside ``poll`` and ``consume``."""
        if arguments and arguments[0] == "METADATA":
            told = topic_id_in(str(arguments[-1]))
            if told is not None:
                self._on_topic_id(*told)
        if level >= self._least:
            LOGGER.log(level, template, *arguments)


def watch_topic_ids(config: Config, on_topic_id: Callable[[str, str], None]) -> Config:
    """The consumer's settings with ``on_topic_id(topic, id)`` for every id it learns.

    Ids are written as Kafka writes them. The callback runs in the thread that polls.
    """
    asked = str(config.get(_DEBUG, ""))
    return {
        **config,
        _DEBUG: f"{asked},{ASKED}" if asked else ASKED,
        "logger": TopicIdLogger(on_topic_id, everything=bool(asked)),
    }
