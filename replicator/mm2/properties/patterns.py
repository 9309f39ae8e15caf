"""From MirrorMaker 2's lists of Java expressions to patterns of a topology file. Pure.

MirrorMaker 2 splits such a list at its commas, joins the parts with ``|`` and asks for a match of the
whole name. Simple expressions become names and globs that match exactly the same; others become
``regex:`` patterns. What Java means otherwise than Python is refused by name, never guessed.
"""

import re
import warnings
from dataclasses import dataclass

_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|$)", re.DOTALL)
_NAMED_GROUP = re.compile(r"\(\?<(?=[A-Za-z])")
_TOKEN = re.compile(r"\.\*|\.\+|\.|\\[.\-_]|[A-Za-z0-9_-]")
_CLASSES = re.compile(r"\\[wWdDsSbB]")
_FLAGS = re.compile(r"\(\?([a-zA-Z]+)\)")
_SPLIT = re.compile(r"\s*,\s*")


@dataclass(frozen=True, slots=True)
class Translated:
    """Patterns of the topology file, and the expressions that have none, each with the reason."""

    patterns: tuple[str, ...]
    refused: tuple[tuple[str, str], ...] = ()


def split_list(value: str) -> tuple[str, ...]:
    """The parts of a list as Kafka splits it; an empty text is an empty list."""
    text = value.strip()
    return tuple(part for part in _SPLIT.split(text) if part) if text else ()


def translate_list(value: str) -> Translated:
    """A whole list, such as the value of ``topics``."""
    parts = split_list(value)
    patterns: list[str] = []
    refused: list[tuple[str, str]] = []
    for part in parts:
        pattern, why = translate(part)
        if why:
            refused.append((part, why))
        else:
            patterns.append(pattern)
    if refused and len(parts) > 1:
        # MirrorMaker 2 joins before it compiles, so '(a,b).*' is one expression: '(a|b).*'.
        pattern, why = translate("|".join(parts))
        if not why:
            return Translated((pattern,))
    return Translated(tuple(dict.fromkeys(patterns)), tuple(refused))


def translate(expression: str) -> tuple[str, str]:
    """One Java expression as a pattern, and why it has none (empty when it has)."""
    simple = _as_glob(expression)
    if simple is not None:
        return simple, ""
    text = _QUOTED.sub(lambda match: re.escape(match[1]), expression)
    text = _NAMED_GROUP.sub("(?P<", text).replace(r"\z", r"\Z")
    if _CLASSES.search(text):
        # Java's \w, \d and \s know ASCII only.
        flags = _FLAGS.match(text)
        text = f"(?a{flags[1]}){text[flags.end() :]}" if flags else f"(?a){text}"
    if _has_set_of_sets(text):
        return "", "Java means a set of sets by it, which has no counterpart here"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            re.compile(text)
        except (re.error, Warning, OverflowError, RecursionError) as error:
            return "", f"Java means something by it that has no counterpart here ({error})"
    return f"regex:{text}", ""


def _has_set_of_sets(text: str) -> bool:
    """Whether a ``[`` or ``&&`` stands inside brackets; to Python those are plain characters."""
    inside = False
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif inside and (char == "[" or text.startswith("&&", at)):
            return True
        elif char in "[]":
            inside = char == "["
        at += 1
    return False


def _as_glob(expression: str) -> str | None:
    """A name or a glob with the very same meaning, where the expression is that simple."""
    glob: list[str] = []
    at = 0
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None:
            return None
        token = match[0]
        if expression[match.end() : match.end() + 1] in {"*", "+", "?", "{"}:
            return None  # a repetition of the token, or a mood of the repetition in it
        glob.append({".*": "*", ".+": "?*", ".": "?"}.get(token, token[-1]))
        at = match.end()
    return "".join(glob) or None
