"""Which records a flow does not copy."""

from collections.abc import Sequence

from replicator.policy.values import DropRule, HeaderMatch

Headers = Sequence[tuple[str, bytes | None]]


def drop_reason(
    rules: Sequence[DropRule], key: bytes | None, value: bytes | None, headers: Headers | None
) -> str | None:
    """Why this record is not copied, as the label of the drop counter; None to copy it.

    A rule drops a record that meets all of its conditions; one matching rule is enough. A rule
    without conditions drops nothing: the absence of a thought must not lose data.
    """
    for number, rule in enumerate(rules):
        if _matches(rule, key, value, headers or ()):
            return f"filter-{number}"
    return None


def _matches(rule: DropRule, key: bytes | None, value: bytes | None, headers: Headers) -> bool:
    if not (rule.headers or rule.key_prefix is not None or rule.tombstone):
        return False
    if rule.tombstone and value is not None:
        return False
    if rule.key_prefix is not None and not (key or b"").startswith(rule.key_prefix.encode()):
        return False
    return all(_has(headers, match) for match in rule.headers)


def _has(headers: Headers, match: HeaderMatch) -> bool:
    wanted = None if match.value is None else match.value.encode()
    return any(
        name == match.name and (wanted is None or content == wanted) for name, content in headers
    )
