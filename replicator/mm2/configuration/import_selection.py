"""MirrorMaker 2's filters of topics and groups as ``topics`` and ``groups`` of a link. Pure."""

from collections.abc import Sequence
from typing import Protocol

from replicator.mm2.properties.java_properties import Entry
from replicator.mm2.properties.patterns import translate_list
from replicator.mm2.properties.security_values import PLACEHOLDER
from replicator.mm2.properties.unmapped import Outcome
from replicator.policy.copies.naming import name_problem
from replicator.policy.copies.selection import is_internal_topic, is_literal, pattern_matches

DEFAULT_TOPICS_EXCLUDED = ("*.replica",)
"""What MirrorMaker 2 leaves out by default and no rule here does; internal topics never match."""

DEFAULT_GROUPS_EXCLUDED = ("console-consumer-*", "connect-*", "__*")
_DOT_TOPIC = ".t"
HEARTBEATS = "heartbeats"


class Taker(Protocol):
    """What a flow offers to write into."""

    def put(self, path: str, value: object, entry: Entry | None, note: str = "") -> None:
        """Sets a field of the policy."""
        ...

    def found(self, entry: Entry, outcome: Outcome, text: str) -> None:
        """Notes what became of an entry."""
        ...


def import_topics(
    flow: Taker,
    include: Entry | None,
    exclude: Entry | None,
    *,
    aliases: Sequence[str],
    also_excluded: Sequence[str],
) -> None:
    """``topics`` and ``topics.exclude``; without the first, everything is taken."""
    taken = _included(flow, include, aliases)
    if not taken:
        return
    flow.put("topics.include", taken, include)
    left_out = list(DEFAULT_TOPICS_EXCLUDED)
    if exclude is not None:
        left_out = _translated(flow, exclude)
    if any(pattern_matches(pattern, _DOT_TOPIC) for pattern in taken):
        # MirrorMaker 2 counts names that begin with a dot as internal.
        left_out.append(r"regex:\..*")
    if any(pattern_matches(pattern, HEARTBEATS) for pattern in taken):
        # Its heartbeats are no data; mm2Compatibility makes and carries them.
        left_out += [HEARTBEATS, f"*.{HEARTBEATS}"]
    left_out.extend(also_excluded)
    if exclude is not None and not left_out:
        flow.found(exclude, "not needed", "it leaves nothing out")
    elif left_out:
        flow.put("topics.exclude", list(dict.fromkeys(left_out)), exclude)


def _included(flow: Taker, entry: Entry | None, aliases: Sequence[str]) -> list[str]:
    if entry is None:
        return ["*"]
    patterns = _translated(flow, entry)
    taken: list[str] = []
    for pattern in patterns:
        if is_literal(pattern) and is_internal_topic(pattern):
            flow.found(entry, "not supported", f"'{pattern}' is internal, and never copied")
        elif is_literal(pattern) and pattern.rpartition(".")[2] == HEARTBEATS:
            flow.found(entry, "not needed", f"'{pattern}' holds no data; see mm2Compatibility")
        elif is_literal(pattern) and (name_problem(pattern) or _looks_copied(pattern, aliases)):
            # As an expression it says the same; as a name it would be refused.
            taken.append(f"regex:{pattern.replace('.', chr(92) + '.')}")
        else:
            taken.append(pattern)
    if not taken:
        flow.found(entry, "not needed", "it names no topic that could be copied")
    return taken


def _looks_copied(name: str, aliases: Sequence[str]) -> bool:
    return any(name.startswith(f"{alias}.") for alias in aliases)


def import_groups(flow: Taker, include: Entry | None, exclude: Entry | None) -> None:
    """``groups`` and ``groups.exclude``; without the first, all groups are taken."""
    taken = _translated(flow, include) if include is not None else ["*"]
    left_out = list(DEFAULT_GROUPS_EXCLUDED)
    if exclude is not None:
        left_out = _translated(flow, exclude)
    flow.put("groups.include", taken, include)
    flow.put("groups.exclude", left_out, exclude)


def _translated(flow: Taker, entry: Entry) -> list[str]:
    if PLACEHOLDER in entry.value:
        flow.found(entry, "not supported", "a configuration provider fills it in; write it out")
        return []
    found = translate_list(entry.value)
    for expression, why in found.refused:
        flow.found(entry, "not supported", f"'{expression}': {why}")
    return list(found.patterns)
