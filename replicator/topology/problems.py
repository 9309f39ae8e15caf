"""What is wrong with a topology file, and where.

Rules speak of **findings**, which know the path inside the document; loading adds the place in the
file and makes **problems** of them, for people.
"""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong at a path of the document, and how to fix it.

    `at_key` asks for the place of the key rather than of its value: unknown fields are wrong by
    their name.
    """

    path: Path
    message: str
    remedy: str
    severity: Severity = "error"
    at_key: bool = False


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A finding with its place; line and column count from 1, 0 where there is no place."""

    file: str
    line: int
    column: int
    path: str
    message: str
    remedy: str
    severity: Severity = "error"

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        parts = [place, self.path, self.message, self.remedy]
        text = "  ".join(part for part in parts if part)
        return text if self.severity == "error" else f"{text}  (warning)"


def path_text(path: Path) -> str:
    """A path as people write it: `spec.links[0].topics.include[1]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif "." in part:
            text += f'["{part}"]'
        else:
            text += f".{part}" if text else part
    return text
