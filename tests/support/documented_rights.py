"""The rights on Kafka that the documentation asks for, read out of its commands and its table."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

DOCS = Path(__file__).resolve().parents[2] / "docs"
TOPOLOGY, TOPICS = "shop", "orders."
"""The names that the pages use."""

OTHERS = "Rights of other users"
"""The heading of the table about everybody but the workers."""

IMPLIED = {
    "READ": "DESCRIBE", "WRITE": "DESCRIBE", "ALTER": "DESCRIBE", "DELETE": "DESCRIBE",
    "ALTER_CONFIGS": "DESCRIBE_CONFIGS",
}  # fmt: skip
"""What Kafka takes from an operation. It stays where the operation is taken away, so that nothing but the
operation itself is missing."""


class Granting(Protocol):
    """A cluster that grants rights; ``LocalCluster`` is one."""

    name: str

    def allow(
        self, user: str, operations: Iterable[str], *, resource: str, name: str, prefixed: bool
    ) -> None: ...


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


@dataclass(frozen=True)
class Need:
    """One operation that somebody other than a worker needs, on one cluster or on both."""

    who: str
    rights: frozenset[Right]

    def __str__(self) -> str:
        return f"{self.who}: {' and '.join(map(str, sorted(self.rights)))}"


def needs_of(who: str) -> list[Need]:
    """What the table of ``security.md`` grants to one of the others, operation by operation."""
    section = (DOCS / "security.md").read_text().partition(f"\n## {OTHERS}\n")[2]
    rows = re.findall(
        r"^\| ([\w -]+) \| (source|target|both) \| ([\w-]+) `([^`]+)` \| ([\w, ]+) \|",
        section.partition("\n## ")[0], re.MULTILINE,
    )  # fmt: skip
    sides = {"source": ["east"], "target": ["west"], "both": ["east", "west"]}
    return [
        Need(who, frozenset(
            Right(
                cluster, resource, name if name == "*" else name.removesuffix("*"),
                name != "*" and name.endswith("*"), _as_acls(operation),
            )
            for cluster in sides[side]
        ))
        for found, side, resource, name, operations in rows if found == who
        for operation in operations.split(", ")
    ]  # fmt: skip


def rights_of(needs: Iterable[Need]) -> set[Right]:
    """All rights of some needs."""
    return {right for need in needs for right in need.rights}


def left_without(rights: Iterable[Right], missing: Iterable[Right]) -> set[Right]:
    """The rights that stay where some are taken away alone, with what Kafka takes from those."""
    gone = set(missing)
    left = {right for right in rights if not any(covers(right, each) for each in gone)}
    for each in gone:
        if each.operation in IMPLIED:
            left.add(
                Right(
                    each.cluster, each.resource, each.name, each.prefixed, IMPLIED[each.operation]
                )
            )
    return left


def covers(right: Right, missing: Right) -> bool:
    """Whether a right grants what the other one does."""
    same = (right.cluster, right.resource) == (missing.cluster, missing.resource)
    return same and right.operation == missing.operation and right.name in {missing.name, "*"}


def grant(
    clusters: Mapping[str, Granting],
    user: str,
    rights: Iterable[Right],
    *,
    topology: str,
    topics: str,
) -> None:
    """Grants rights to a user, for another topology and for topics with another prefix."""
    for right in (each.under(topology, topics) for each in rights):
        clusters[right.cluster].allow(
            user, [right.operation], resource=right.resource, name=right.name,
            prefixed=right.prefixed,
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
