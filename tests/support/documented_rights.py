"""The rights on Kafka that the documentation asks for, read out of its commands and its table."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
TOPOLOGY, TOPICS = "shop", "orders."
"""The names that the pages use."""


@dataclass(frozen=True, order=True)
class Right:
    """One operation on one resource of one cluster, in the words of Kafka's ACLs (READ, topic)."""

    cluster: str
    resource: str
    name: str
    prefixed: bool
    operation: str

    def __str__(self) -> str:
        return f"{self.operation} on {self.resource} {self.name}{'*' if self.prefixed else ''} of {self.cluster}"

    def under(self, topology: str, topics: str) -> "Right":
        """The same for another topology, and for topics with another prefix."""
        name = (
            topics if self.name == TOPICS else self.name.replace(f".{TOPOLOGY}.", f".{topology}.")
        )
        return Right(self.cluster, self.resource, name, self.prefixed, self.operation)


def commands_of(page: str) -> frozenset[Right]:
    """What the page's `kafka-acls.sh --add` commands grant."""
    lines = re.findall(r"^\$ (kafka-acls.sh .*)$", (DOCS / page).read_text(), re.MULTILINE)
    return frozenset(right for line in lines for right in _granted(shlex.split(line)))


def table_of(page: str, heading: str) -> frozenset[Right]:
    """What the first table under a heading asks for; its source is east and its target west."""
    section = (DOCS / page).read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(
        r"^\| (source|target) \| ([\w-]+) `([^`]+)` \| ([\w, ]+) \|", section, re.MULTILINE
    )
    return frozenset(
        Right(
            {"source": "east", "target": "west"}[side], resource,
            name if name == "*" else name.removesuffix("*"), name != "*" and name.endswith("*"),
            _as_acls(operation),
        )
        for side, resource, name, operations in rows
        for operation in operations.split(", ")
    )  # fmt: skip


def _granted(words: list[str]) -> Iterator[Right]:
    options: dict[str, list[str]] = {}
    for word in words[1:]:
        if word.startswith("--"):
            values = options.setdefault(word, [])
        else:
            values.append(word)
    assert "--add" in options
    (resource,) = {"--topic", "--group", "--transactional-id"} & options.keys()
    for operation in options["--operation"]:
        yield Right(
            options["--bootstrap-server"][0].split(".")[1], resource[2:], options[resource][0],
            options.get("--resource-pattern-type") == ["prefixed"], _as_acls(operation),
        )  # fmt: skip


def _as_acls(operation: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()
