"""Reads the chart's values.yaml with the descriptions that stand above its keys (`# -- ...`)."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

_KEY = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z][A-Za-z0-9]*):")


@dataclass(frozen=True, slots=True)
class Value:
    """One documented value: where it stands, what it is by default, what it means."""

    path: tuple[str, ...]
    default: Any
    description: str

    @property
    def name(self) -> str:
        """The path as people write it."""
        return ".".join(self.path)


def load_values(file: Path) -> dict[str, Any]:
    """The values themselves."""
    values: dict[str, Any] = YAML(typ="safe").load(file)
    return values


def documented_values(file: Path) -> list[Value]:
    """Every value that has a description, in the order of the file."""
    values = load_values(file)
    found: list[Value] = []
    path: list[tuple[int, str]] = []
    told: list[str] = []
    for line in file.read_text().splitlines():
        text = line.strip()
        if text.startswith("# -- "):
            told = [text.removeprefix("# -- ")]
        elif text.startswith("# ") and told:
            told.append(text.removeprefix("# "))
        elif (key := _KEY.match(line)) is not None:
            indent = len(key["indent"])
            path = [
                *((depth, name) for depth, name in path if depth < indent),
                (indent, key["key"]),
            ]
            if told:
                names = tuple(name for _, name in path)
                found.append(Value(names, _at(values, names), " ".join(told)))
            told = []
        else:
            told = []
    return found


def undocumented(file: Path) -> list[str]:
    """Values that neither have a description nor stand below one that has."""
    known = {value.path for value in documented_values(file)}

    def below(node: object, path: tuple[str, ...]) -> list[str]:
        if path in known:
            return []
        if not isinstance(node, dict) or not node:
            return [".".join(path)]
        return [name for key, value in node.items() for name in below(value, (*path, key))]

    listed = {"workers"}  # its fields are those of `worker`
    return [name for name in below(load_values(file), ()) if name.split(".", 1)[0] not in listed]


def _at(values: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        values = values[name]
    return values
