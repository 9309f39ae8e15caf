"""Reading partitions without being in a group, and so without a right on any.

The library wants the name of a group from every consumer and looks up its coordinator, also where partitions
are assigned and nothing is committed. A cluster that refuses this look-up refuses nothing that is needed.
"""

from typing import Any

from confluent_kafka import Consumer, Message

from replicator.kafka.clients import codes

NO_GROUP = "replicator.no-group"
"""The name that such consumers give; nothing is committed under it."""


class GrouplessConsumer(Consumer):
    """A consumer of assigned partitions; that its group is refused is no answer of a poll."""

    def poll(self, *arguments: Any, **named: Any) -> Message | None:  # noqa: ANN401  as it is
        """As the library's."""
        message = super().poll(*arguments, **named)
        return None if message is None or _of_group(message) else message

    def consume(self, *arguments: Any, **named: Any) -> list[Message]:  # noqa: ANN401  as it is
        """As the library's."""
        return [each for each in super().consume(*arguments, **named) if not _of_group(each)]


def _of_group(message: Message) -> bool:
    error = message.error()
    return error is not None and error.code() == codes.GROUP_REFUSED
