"""Java properties files, as ``java.util.Properties`` reads them, with the line of every entry. Pure.

Keys may stand more than once; Java keeps the last. All of them are given back, so that a reader can
say what became of each.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from replicator.errors import InputError

ENCODING = "iso-8859-1"
"""What Kafka's tools read properties files as; other characters stand as ``\\uXXXX``."""

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


@dataclass(frozen=True, slots=True)
class Entry:
    """One key with its value; ``line`` counts from 1, of several lines the first."""

    key: str
    value: str
    line: int


def parse_properties(text: str) -> tuple[Entry, ...]:
    r"""Reads the text of a properties file; any text is one, but for a broken ``\uXXXX``.

    Raises:
        InputError: a ``\u`` is not followed by four hexadecimal digits; names the line.
    """
    return tuple(_entry(line, number) for number, line in _logical_lines(text))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their continuations joined; comments and blank lines are left out."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    at = 0
    while at < len(lines):
        number = at + 1
        line = lines[at].lstrip(_BLANKS)
        at += 1
        if not line or line[0] in "#!":
            continue
        while _goes_on(line):
            # Java drops the blanks that a continuation begins with, and takes '#' there as it is.
            following = lines[at].lstrip(_BLANKS) if at < len(lines) else ""
            line = line[:-1] + following
            at += 1
            if not following:
                break
        yield number, line


def _goes_on(line: str) -> bool:
    """An odd number of backslashes at the end; an even number stands for half as many."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _entry(line: str, number: int) -> Entry:
    end = _key_end(line)
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in {"=", ":"}:
        rest = rest[1:].lstrip(_BLANKS)
    return Entry(_unescaped(line[:end], number), _unescaped(rest, number), number)


def _key_end(line: str) -> int:
    """Where the key ends: at the first blank, ``=`` or ``:`` without a backslash before it."""
    at = 0
    while at < len(line) and line[at] not in "=:" and line[at] not in _BLANKS:
        at += 2 if line[at] == "\\" else 1
    return min(at, len(line))


def _unescaped(text: str, number: int) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\\":
            parts.append(char)
            continue
        char = text[at : at + 1]
        at += 1
        if char == "u":
            digits = text[at : at + 4]
            if len(digits) < 4 or not _HEX_DIGITS.issuperset(digits):
                raise InputError(
                    f"line {number} holds '\\u{digits}', which is not four hexadecimal digits",
                    remedy="Java refuses such a file, too; write a backslash of its own as '\\\\'.",
                )
            parts.append(chr(int(digits, 16)))
            at += 4
        else:
            parts.append(_ESCAPES.get(char, char))
    # Characters beyond the first plane stand as two escapes.
    return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
