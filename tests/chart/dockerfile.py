"""Reads the Dockerfile far enough to check it and to run its steps."""

import re
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Stage:
    """One stage: what it begins from, and its instructions in order."""

    name: str
    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, word: str) -> list[str]:
        return [rest for each, rest in self.instructions if each == word]


def stages(file: Path) -> dict[str, Stage]:
    text = re.sub(r"\\\n\s*", " ", file.read_text())
    found: dict[str, Stage] = {}
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        if not word or word.startswith("#"):
            continue
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            found[name] = Stage(name, base)
        elif found:
            list(found.values())[-1].instructions.append((word, rest))
    return found
