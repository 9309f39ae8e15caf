"""Which topics and groups a link takes.

A pattern is a literal name, a glob (`*` any run of characters, `?` one), or `regex:` followed by an
expression that must match the whole name. Exclude wins over include. Names that belong to Kafka or
to replicators never match, whatever the patterns say.
"""

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from replicator.policy.copies.naming import alias_chain
from replicator.policy.values import LinkPolicy, Priority, Selection

REGEX_PREFIX = "regex:"
MM2_HEARTBEATS = "heartbeats"
_LEGAL_GLOB = re.compile(r"[a-zA-Z0-9._*?-]+")


class Matcher:
    """A selection, compiled once; call it with a name."""

    __slots__ = ("_excluded", "_excluded_names", "_included", "_included_names")

    def __init__(self, selection: Selection) -> None:
        self._included_names, self._included = _compile_all(selection.include)
        self._excluded_names, self._excluded = _compile_all(selection.exclude)

    def __call__(self, name: str) -> bool:
        """True when the name is included and not excluded."""
        if name in self._excluded_names or any(p.fullmatch(name) for p in self._excluded):
            return False
        return name in self._included_names or any(p.fullmatch(name) for p in self._included)


@lru_cache(maxsize=512)
def matcher(selection: Selection) -> Matcher:
    """The compiled matcher of a selection.

    Raises:
        ValueError: when an expression does not compile; `pattern_problem` says so beforehand.
    """
    return Matcher(selection)


def is_regex(pattern: str) -> bool:
    """True for `regex:` patterns."""
    return pattern.startswith(REGEX_PREFIX)


def is_literal(pattern: str) -> bool:
    """True for patterns that are a plain name."""
    return not is_regex(pattern) and "*" not in pattern and "?" not in pattern


def pattern_problem(pattern: str, *, topic: bool) -> str | None:
    """Why a pattern cannot be used, or None; group names may hold any character."""
    if is_regex(pattern):
        if not pattern.removeprefix(REGEX_PREFIX).strip():
            return f"'{pattern}' has no expression behind '{REGEX_PREFIX}'"
        try:
            re.compile(pattern.removeprefix(REGEX_PREFIX))
        except re.error as error:
            return f"'{pattern}' is not a regular expression: {error}"
        return None
    if not pattern:
        return "a pattern cannot be empty"
    if topic and not _LEGAL_GLOB.fullmatch(pattern):
        return f"'{pattern}' holds characters that no topic name may have"
    return None


def pattern_matches(pattern: str, name: str) -> bool:
    """True when one pattern matches the whole name."""
    return _compiled(pattern).fullmatch(name) is not None


def is_internal_topic(name: str) -> bool:
    """True for topics of Kafka itself and of replicators (control and quarantine topics too)."""
    return name.startswith("__") or name.endswith((".internal", "-internal"))


def is_heartbeats_topic(name: str, aliases: Collection[str]) -> bool:
    """True for MirrorMaker 2's `heartbeats` and its copies: `east.heartbeats`, `west.east.heartbeats`."""
    *chain, last = name.split(".")
    return last == MM2_HEARTBEATS and all(alias in aliases for alias in chain)


def select_topics(
    policy: LinkPolicy,
    topics: Iterable[str],
    *,
    blocked: Collection[str],
    aliases: Collection[str],
) -> tuple[str, ...]:
    """The topics of the source that a flow copies, in order of name.

    Where target names carry the source, a topic whose name says that it came through a blocked
    cluster (the target always is) is never taken: otherwise two clusters would send each other
    copies of copies under ever longer names.

    Args:
        policy: of the flow.
        topics: names on the source cluster.
        blocked: the flow's blocked aliases (`FlowPlan.blocked`).
        aliases: all aliases of the topology.
    """
    takes = matcher(policy.topics)
    return tuple(
        sorted(
            name
            for name in set(topics)
            if takes(name)
            and not is_internal_topic(name)
            and not (policy.heartbeats_reserved and is_heartbeats_topic(name, aliases))
            and not any(alias in blocked for alias in alias_chain(policy.naming, name, aliases))
        )
    )


def select_groups(selection: Selection, groups: Iterable[str]) -> tuple[str, ...]:
    """The consumer groups whose positions are carried over, in order of name."""
    takes = matcher(selection)
    return tuple(
        sorted(
            name
            for name in set(groups)
            if takes(name) and not name.startswith(("__", "replicator."))
        )
    )


def topic_priority(policy: LinkPolicy, topic: str) -> Priority:
    """The priority of one topic: the first entry of `topics.priorities` that matches, else the link's."""
    for pattern, priority in policy.topic_priorities:
        if pattern_matches(pattern, topic):
            return priority
    return policy.priority


def _compile_all(patterns: tuple[str, ...]) -> tuple[frozenset[str], tuple[re.Pattern[str], ...]]:
    names = frozenset(pattern for pattern in patterns if is_literal(pattern))
    return names, tuple(_compiled(pattern) for pattern in patterns if not is_literal(pattern))


@lru_cache(maxsize=2048)
def _compiled(pattern: str) -> re.Pattern[str]:
    if is_regex(pattern):
        return re.compile(pattern.removeprefix(REGEX_PREFIX))
    return re.compile(
        "".join({"*": ".*", "?": "."}.get(char) or re.escape(char) for char in pattern), re.DOTALL
    )
