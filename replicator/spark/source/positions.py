"""Where a read begins and ends, as users of Spark's own Kafka source write it. Pure.

A position is one of: a word for all partitions, offsets by partition, times by partition, one time for
all, or None, which leaves it to the kind of query (a batch begins at the earliest, a stream at the latest).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from replicator.errors import InputError
from replicator.identifiers import TopicPartition
from replicator.spark.base.ranges import EARLIEST, LATEST, keyed_offsets, parse_offsets

Word = Literal["earliest", "latest"]
WORDS: Mapping[str, Word] = {"earliest": "earliest", "latest": "latest"}


@dataclass(frozen=True, slots=True)
class Times:
    """The first record of each partition that is not older: milliseconds since 1970."""

    by_partition: Mapping[TopicPartition, int]


Position = Word | int | Times | Mapping[TopicPartition, int] | None


def read_position(
    options: Mapping[str, str], side: Literal["starting", "ending"], wrong: list[str]
) -> Position:
    """The position that the options of one side name; adds what is wrong with them to ``wrong``.

    Args:
        options: by name in lower case.
        side: of the range; it is the options' prefix.
        wrong: one sentence per mistake is appended.
    """
    names = [f"{side}Offsets", f"{side}OffsetsByTimestamp", f"{side}Timestamp"]
    given = [name for name in names if options.get(name.lower())]
    if len(given) > 1:
        wrong.append(f"give only one of {', '.join(given)}")
        return None
    if not given:
        return None
    (name,) = given
    text = options[name.lower()]
    if name == names[2]:
        return _time(text, name, wrong)
    if name == names[1]:
        return _times(text, name, wrong)
    return _offsets(text, name, side, wrong)


def _offsets(text: str, name: str, side: str, wrong: list[str]) -> Position:
    word = WORDS.get(text.lower())
    if word is not None:
        if side == "ending" and word == "earliest":
            wrong.append(f"{name} cannot be earliest: nothing would be read")
            return None
        return word
    try:
        found = parse_offsets(text, option=name)
    except InputError as error:
        wrong.append(error.paragraph().rstrip("."))
        return None
    if any(offset < EARLIEST for offset in found.values()):
        wrong.append(f"{name}: offsets are 0 or more, {EARLIEST} (earliest) or {LATEST} (latest)")
        return None
    if side == "ending" and EARLIEST in found.values():
        wrong.append(f"{name}: {EARLIEST} (earliest) cannot be an end")
        return None
    return found


def _time(text: str, name: str, wrong: list[str]) -> int | None:
    if text.isdecimal():
        return int(text)
    wrong.append(f"{name} is milliseconds since 1970, not '{text}'")
    return None


def _times(text: str, name: str, wrong: list[str]) -> Times | None:
    try:
        found = keyed_offsets(json.loads(text))
    except (ValueError, TypeError, AttributeError):
        wrong.append(f'{name} is JSON such as {{"topic": {{"0": 1767225600000}}}}')
        return None
    if any(at < 0 for at in found.values()):
        wrong.append(f"{name}: times are milliseconds since 1970, 0 or more")
        return None
    return Times(found)
