"""Whether two selections can take the same name, decided before any name is known.

Literals and globs are decided exactly: each pattern is a small automaton, and the search walks all
of them at once, excludes included, until it meets a name that both selections take. Expressions
cannot be decided that way; they are tried against the literals, and what is left is called possible.
"""

from collections import deque
from dataclasses import dataclass
from typing import Literal

from replicator.policy.copies.naming import target_name
from replicator.policy.copies.selection import (
    REGEX_PREFIX,
    is_literal,
    is_regex,
    matcher,
    pattern_matches,
)
from replicator.policy.values import Naming, Selection

_MAX_STATES = 20_000
_OTHER = "x"
"""Stands for every character that no pattern names; 'x' itself is legal everywhere."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """A name both take (`certain`, with the name), or patterns that may meet (`possible`)."""

    kind: Literal["certain", "possible"]
    example: str


def find_overlap(first: Selection, second: Selection) -> Overlap | None:
    """A name that both selections take, or may take; None when there cannot be any."""
    possible: Overlap | None = None
    excludes = tuple(p for p in first.exclude + second.exclude if not is_regex(p))
    for one in first.include:
        for other in second.include:
            if is_regex(one) or is_regex(other):
                found = _with_expression(one, other, first, second)
            else:
                found = _witness(one, other, excludes, first, second)
            if found is not None and found.kind == "certain":
                return found
            possible = possible or found
    return possible


def on_target(selection: Selection, naming: Naming, source_alias: str) -> Selection:
    """The same selection, in names of the target."""
    return Selection(
        tuple(_renamed(pattern, naming, source_alias) for pattern in selection.include),
        tuple(_renamed(pattern, naming, source_alias) for pattern in selection.exclude),
    )


def _renamed(pattern: str, naming: Naming, source_alias: str) -> str:
    if not is_regex(pattern):
        return target_name(naming, source_alias, pattern)
    if naming.kind == "identity":
        return pattern
    # The ends of a name are legal topic characters; of those only the dot means more in a regex.
    before, _, after = target_name(naming, source_alias, "\n").replace(".", r"\.").partition("\n")
    return f"{REGEX_PREFIX}{before}(?:{pattern.removeprefix(REGEX_PREFIX)}){after}"


def _with_expression(one: str, other: str, first: Selection, second: Selection) -> Overlap | None:
    for literal, expression in ((one, other), (other, one)):
        if is_literal(literal):
            taken = matcher(first)(literal) and matcher(second)(literal)
            if taken and pattern_matches(expression, literal):
                return Overlap("certain", literal)
            return None
    if one == other and not first.exclude and not second.exclude:
        return Overlap("certain", one)
    return Overlap("possible", f"{one} and {other}")


def _witness(
    one: str, other: str, excludes: tuple[str, ...], first: Selection, second: Selection
) -> Overlap | None:
    """The shortest name that matches both globs and no literal or glob exclude."""
    patterns = (one, other, *excludes)
    alphabet = sorted({c for pattern in patterns for c in pattern if c not in "*?"} | {_OTHER})
    start = tuple(_closed(pattern, frozenset({0})) for pattern in patterns)
    # The start is not seen yet: a name has a character, and after one the state may be the same.
    seen: set[tuple[frozenset[int], ...]] = set()
    queue = deque([(start, "")])
    while queue:
        states, name = queue.popleft()
        if name and _accepts(patterns, states):
            taken = matcher(first)(name) and matcher(second)(name)  # where regex excludes count
            return Overlap("certain" if taken else "possible", name)
        for char in alphabet:
            after = tuple(
                _step(pattern, state, char) for pattern, state in zip(patterns, states, strict=True)
            )
            if after[0] and after[1] and after not in seen:
                seen.add(after)
                queue.append((after, name + char))
        if len(seen) > _MAX_STATES:
            return Overlap("possible", f"{one} and {other}")
    return None


def _accepts(patterns: tuple[str, ...], states: tuple[frozenset[int], ...]) -> bool:
    ends = [len(pattern) in state for pattern, state in zip(patterns, states, strict=True)]
    return ends[0] and ends[1] and not any(ends[2:])


def _step(pattern: str, state: frozenset[int], char: str) -> frozenset[int]:
    after: set[int] = set()
    for place in state:
        if place == len(pattern):
            continue
        if pattern[place] == "*":
            after.add(place)
        elif pattern[place] in {"?", char}:
            after.add(place + 1)
    return _closed(pattern, frozenset(after))


def _closed(pattern: str, state: frozenset[int]) -> frozenset[int]:
    """A star may also match nothing: standing before it is standing behind it too."""
    closed = set(state)
    for place in state:
        at = place
        while at < len(pattern) and pattern[at] == "*":
            at += 1
            closed.add(at)
    return frozenset(closed)
