"""How a source topic is called on the target, and back.

Every naming is a template of one `{topic}` and at most one `{source}`: `identity` is `{topic}`,
`prefix` is `{source}.{topic}`. That makes reading a name back the same rule for all of them.
"""

import re
from collections.abc import Collection
from functools import lru_cache

from replicator.policy.values import Naming

MAX_TOPIC_LENGTH = 249
_LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]+")
_FIELD = re.compile(r"\{([^{}]*)\}")
_ALIAS_CHARACTERS = re.compile(r"[-a-z0-9]*")
_KINDS = {"identity": "{topic}", "prefix": "{source}.{topic}"}


def template_of(naming: Naming) -> str:
    """The template behind any naming."""
    return naming.template or "{topic}" if naming.kind == "template" else _KINDS[naming.kind]


def carries_source(naming: Naming) -> bool:
    """True where the target name names the source, so that copies of copies can be recognised."""
    return "{source}" in template_of(naming)


def template_problem(template: str) -> str | None:
    """Why a template cannot be used, or None.

    It must be readable backwards: exactly one `{topic}`, and between it and `{source}` something
    that an alias cannot contain, or `ea` + `storders` and `east` + `orders` would be one name.
    """
    fields = _FIELD.findall(template)
    unknown = [name for name in fields if name not in {"source", "topic"}]
    if unknown:
        return f"'{{{unknown[0]}}}' is not a field of a template"
    if fields.count("topic") != 1:
        return "it must hold {topic} exactly once, or names cannot be read back"
    if fields.count("source") > 1:
        return "it may hold {source} only once"
    rest = _FIELD.sub("", template)
    if rest and not _LEGAL_TOPIC.fullmatch(rest):
        return "it holds characters that no topic name may have (allowed: a-z A-Z 0-9 . _ -)"
    if "source" in fields and _ALIAS_CHARACTERS.fullmatch(_between(template)):
        return "{source} and {topic} must be separated by '.' or '_', or names cannot be read back"
    return None


def target_name(naming: Naming, source_alias: str, topic: str) -> str:
    """The name on the target of a topic of the source cluster."""
    before, after = _ends(template_of(naming), source_alias)
    return f"{before}{topic}{after}"


def source_name(naming: Naming, source_alias: str, target_topic: str) -> str | None:
    """The topic of the source cluster behind a name on the target; None when it is not a copy."""
    before, after = _ends(template_of(naming), source_alias)
    if len(target_topic) <= len(before) + len(after):
        return None
    if not (target_topic.startswith(before) and target_topic.endswith(after)):
        return None
    return target_topic[len(before) : len(target_topic) - len(after)]


def alias_chain(naming: Naming, topic: str, aliases: Collection[str]) -> tuple[str, ...]:
    """The clusters a name says it came through, newest first; empty where names do not show it."""
    if not carries_source(naming):
        return ()
    chain: list[str] = []
    rest: str | None = topic
    while rest is not None:
        name, rest = rest, None
        for alias in aliases:
            inner = source_name(naming, alias, name)
            if inner is not None:
                chain.append(alias)
                rest = inner
                break
    return tuple(chain)


def name_problem(topic: str) -> str | None:
    """Why Kafka would refuse this topic name, or None."""
    if not topic:
        return "a topic name cannot be empty"
    if topic in {".", ".."}:
        return f"'{topic}' cannot be a topic name"
    if len(topic) > MAX_TOPIC_LENGTH:
        return f"'{topic[:32]}…' has {len(topic)} characters; Kafka allows {MAX_TOPIC_LENGTH}"
    if not _LEGAL_TOPIC.fullmatch(topic):
        return (
            f"'{topic}' holds characters that no topic name may have (allowed: a-z A-Z 0-9 . _ -)"
        )
    return None


@lru_cache(maxsize=4096)
def _ends(template: str, source_alias: str) -> tuple[str, str]:
    before, _, after = template.partition("{topic}")
    return before.replace("{source}", source_alias), after.replace("{source}", source_alias)


def _between(template: str) -> str:
    first, second = sorted((template.index("{source}"), template.index("{topic}")))
    return template[template.index("}", first) + 1 : second]
