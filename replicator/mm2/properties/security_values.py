"""Reading the one value of a properties file that hides several: ``sasl.jaas.config``. Pure."""

import re

PLACEHOLDER = "${"
"""Begins a reference that one of Connect's configuration providers would resolve."""


def jaas_value(text: str, option: str) -> str | None:
    """The value of an option of a login module, such as ``username``; None when it is not there."""
    match = re.search(rf"""\b{option}\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;]+)""", text)
    if match is None:
        return None
    value = match[1]
    if value[0] in "\"'":
        value = re.sub(r"\\(.)", r"\1", value[1:-1])
    return value


def secret_variable(alias: str, kind: str) -> str:
    """The environment variable that a secret of a cluster is to be put into."""
    return f"{alias.replace('-', '_').upper()}_{kind}"
