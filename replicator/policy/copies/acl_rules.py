"""Which rights on the source become which rights on the target. Pure.

Rights follow copies, to read them and no more. MirrorMaker 2 keeps literal topic rights, drops ALLOW
WRITE and turns ALLOW ALL into READ; these rules go further on the same way: nothing that changes a
topic is ever carried over, and patterns are carried over so that they grant nothing but copies.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from replicator.policy.copies.naming import carries_source, target_name, template_of
from replicator.policy.copies.selection import is_literal, is_regex
from replicator.policy.values import LinkPolicy

Pattern = Literal["LITERAL", "PREFIXED"]
Permission = Literal["ALLOW", "DENY"]

TOPIC = "TOPIC"
EVERYTHING = "*"
"""As a literal name: Kafka's wildcard."""
READING = ("READ", "DESCRIBE", "DESCRIBE_CONFIGS")
"""Operations that may stand on the target; every other one could change a copy."""


@dataclass(frozen=True, slots=True, order=True)
class AclBinding:
    """One right as Kafka stores it; enumerations by Kafka's names for them."""

    resource: str
    pattern: Pattern
    name: str
    principal: str
    host: str
    operation: str
    permission: Permission

    @property
    def shown(self) -> str:
        """The resource's name for people; a prefix ends with an asterisk."""
        return self.name if self.pattern == "LITERAL" else f"{self.name}*"


def write_denial(topic: str, principal: str, *, pattern: Pattern = "LITERAL") -> AclBinding:
    """The rule that fences a writer of a topic."""
    return AclBinding(TOPIC, pattern, topic, principal, "*", "WRITE", "DENY")


@dataclass(frozen=True, slots=True)
class AclScope:
    """What of the source a link's rights may speak of.

    Attributes:
        topics: source topics that the link copies now, with their names on the target.
        whole_pair: whether every link over the same pair of clusters carries rights over.
    """

    policy: LinkPolicy
    source: str
    topics: Mapping[str, str]
    whole_pair: bool = True


def target_bindings(binding: AclBinding, scope: AclScope) -> tuple[AclBinding, ...]:
    """What one right on the source becomes on the target; empty where it is not carried over.

    Principal, host and permission stay. Only rights on topics count. A literal name becomes the
    copy's name. A prefix, and the wildcard as the prefix of no letters, stays a prefix where nothing
    but copies can lie under it (see ``_kept_prefixes``); elsewhere it becomes one literal right for
    each copy. A wildcard is never written: it would grant what is no copy.
    """
    if binding.resource != TOPIC:
        return ()
    operations = target_operations(binding.operation, binding.permission)
    if not operations:
        return ()
    return tuple(
        AclBinding(
            TOPIC, pattern, name, binding.principal, binding.host, operation, binding.permission
        )
        for pattern, name in _target_patterns(binding, scope)
        for operation in operations
    )


def target_operations(operation: str, permission: Permission) -> tuple[str, ...]:
    """The operations that stand for one of the source: ALL is READ, what changes topics is nothing.

    READ implies DESCRIBE where it is allowed but not where it is denied, so a denied ALL is every
    reading operation: nobody may read on the target what is denied to them on the source.
    """
    if operation == "ALL":
        return ("READ",) if permission == "ALLOW" else READING
    return (operation,) if operation in READING else ()


def covered(wanted: AclBinding, existing: Collection[AclBinding]) -> bool:
    """Whether the same principal already has it, by itself or as part of ALL."""
    return wanted in existing or replace(wanted, operation="ALL") in existing


def _target_patterns(binding: AclBinding, scope: AclScope) -> tuple[tuple[Pattern, str], ...]:
    if binding.pattern == "LITERAL" and binding.name != EVERYTHING:
        target = scope.topics.get(binding.name)
        return () if target is None else (("LITERAL", target),)
    prefix = "" if binding.pattern == "LITERAL" else binding.name
    meant = sorted(topic for topic in scope.topics if topic.startswith(prefix))
    # A prefix without a single copy says nothing yet. That also ends what would else go on for
    # ever: two clusters that hand each other's prefixes back under longer and longer names.
    kept = [
        name
        for name in _kept_prefixes(prefix, scope)
        if any(topic.startswith(name) for topic in meant)
    ]
    prefixes: list[tuple[Pattern, str]] = [
        ("PREFIXED", target_name(scope.policy.naming, scope.source, name)) for name in kept
    ]
    literals: list[tuple[Pattern, str]] = [
        ("LITERAL", scope.topics[topic]) for topic in meant if not topic.startswith(tuple(kept))
    ]
    return (*prefixes, *literals)


def _kept_prefixes(prefix: str, scope: AclScope) -> tuple[str, ...]:
    """Prefixes of the source, all within ``prefix``, under whose names there are only copies there.

    With a name that begins with the source (``east.``) that is every prefix, if all links over the
    pair carry rights. With other names it is what the link takes as a whole: ``payments.`` where
    ``payments.*`` is included and no exclude can match within. Where something follows the topic
    (``{topic}.east``) there is none: copies of other sources begin the same.
    """
    naming = scope.policy.naming
    if not template_of(naming).endswith("{topic}"):
        return ()
    if carries_source(naming) and scope.whole_pair:
        return (prefix,)
    heads = [
        pattern[:-1]
        for pattern in scope.policy.topics.include
        if pattern.endswith("*") and not is_regex(pattern) and is_literal(pattern[:-1])
    ]
    within = {
        max(prefix, head, key=len)
        for head in heads
        if head.startswith(prefix) or prefix.startswith(head)
    }
    kept = sorted(
        name
        for name in within
        if target_name(naming, scope.source, name)
        and not "__".startswith(name)
        and not any(_may_match(pattern, name) for pattern in scope.policy.topics.exclude)
    )
    return tuple(
        name for name in kept if not any(name != other and name.startswith(other) for other in kept)
    )


def _may_match(pattern: str, prefix: str) -> bool:
    """Whether a pattern may match some name that begins with the prefix; in doubt it may."""
    if is_regex(pattern):
        return True
    if is_literal(pattern):
        return pattern.startswith(prefix)
    head = pattern[: min(pattern.find(sign) for sign in "*?" if sign in pattern)]
    return head.startswith(prefix) or prefix.startswith(head)


def without_rules(topics: Iterable[str], existing: Collection[AclBinding]) -> tuple[str, ...]:
    """Topics that no rule speaks of, by name, prefix or wildcard: a first one changes who is let in."""
    about = [one for one in existing if one.resource == TOPIC]
    literal = {one.name for one in about if one.pattern == "LITERAL"}
    if EVERYTHING in literal:
        return ()
    prefixes = tuple({one.name for one in about if one.pattern == "PREFIXED"})
    return tuple(
        one for one in sorted(topics) if one not in literal and not one.startswith(prefixes)
    )
