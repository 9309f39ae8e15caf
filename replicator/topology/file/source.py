"""YAML text to plain data, with the place of every value.

Only mappings, lists and plain scalars pass: no tags, no objects. Size, depth and aliases are bounded,
so that a file cannot blow up in memory, and a key that is given twice is refused, because the reader
of a file sees only one of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from replicator.topology.problems import Finding, Path

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 40
MAX_NODES = 200_000
"""After aliases are followed; a file of 1 MiB without aliases cannot hold more."""

_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = {f"{_TAG}str", f"{_TAG}timestamp", f"{_TAG}value", f"{_TAG}merge"}
_COLLECTION_TAGS = {f"{_TAG}map", f"{_TAG}seq"}
_SCALAR_TAGS = {f"{_TAG}{name}" for name in ("int", "float", "bool", "null")}

Place = tuple[int, int]


@dataclass(slots=True)
class Source:
    """A file that was read: its data, where each value and key stands, and what was wrong."""

    data: Any = None
    values: dict[Path, Place] = field(default_factory=dict)
    keys: dict[Path, Place] = field(default_factory=dict)
    findings: list[tuple[Finding, Place]] = field(default_factory=list)

    def place(self, path: Path, *, at_key: bool = False) -> Place:
        """Line and column of a path, or of the nearest thing around it that is there."""
        if at_key and path in self.keys:
            return self.keys[path]
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, (1, 1))


def read_source(text: str) -> Source:
    """Reads YAML text; whatever is wrong with it stands in `findings`, nothing is raised."""
    source = Source()
    if len(text.encode()) > MAX_BYTES:
        _add(source, (), (1, 1), "the file is larger than 1 MiB", "split the topology")
        return source
    try:
        documents = list(_compose(text))
    except MarkedYAMLError as error:
        _add_syntax_error(source, error, text)
        return source
    except YAMLError as error:
        _add(source, (), (1, 1), f"not YAML: {_first_line(str(error))}", "save it as UTF-8 text")
        return source
    except (RecursionError, ValueError):
        _add(source, (), (1, 1), "the file cannot be read as YAML", "look for nested brackets")
        return source
    if not documents or _is_empty(documents[0]):
        _add(source, (), (1, 1), "the file is empty", "see topologies/ for examples")
    elif len(documents) > 1:
        place = _place(documents[1])
        _add(source, (), place, "a second document begins", "keep one topology per file")
    else:
        _Reader(source).read(documents[0])
    return source


def _compose(text: str) -> Iterator[Node]:
    yaml = YAML(typ="safe", pure=True)
    yaml.allow_duplicate_keys = True  # found by the reader, all of them and with their places
    yield from yaml.compose_all(text)


class _Reader:
    """Walks the node tree once; one object per file."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._constructor = SafeConstructor(loader=YAML(typ="safe", pure=True))
        self._nodes = 0

    def read(self, root: Node) -> None:
        if not isinstance(root, MappingNode):
            _add(
                self._source,
                (),
                _place(root),
                "the file is not a mapping",
                "begin with apiVersion:",
            )
            return
        self._source.data = self._value(root, (), 0)

    def _value(self, node: Node, path: Path, depth: int) -> object:
        self._nodes += 1
        self._source.values.setdefault(path, _place(node))
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            if not any(found.path == () for found, _ in self._source.findings):
                wrong = (
                    "nested too deeply" if depth > MAX_DEPTH else "too many values behind aliases"
                )
                _add(self._source, (), _place(node), wrong, "write the file plainly")
            return None
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if node.tag not in _COLLECTION_TAGS:
            self._refuse_tag(node, path)
        if isinstance(node, MappingNode):
            return self._mapping(node, path, depth)
        return [self._value(item, (*path, at), depth + 1) for at, item in enumerate(node.value)]

    def _mapping(self, node: MappingNode, path: Path, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                _add(self._source, path, _place(key_node), "a key must be a plain word", "name it")
                continue
            key = key_node.value
            at = (*path, key)
            if key in values:
                wrong = f"'{key}' is given twice"
                _add(self._source, at, _place(key_node), wrong, "keep one of the two")
                continue
            self._source.keys[at] = _place(key_node)
            values[key] = self._value(value_node, at, depth + 1)
        return values

    def _scalar(self, node: ScalarNode, path: Path) -> object:
        if node.tag in _TEXT_TAGS:
            return node.value
        if node.tag in _SCALAR_TAGS:
            try:
                return self._constructor.construct_object(node)
            except (ValueError, YAMLError):
                return node.value
        self._refuse_tag(node, path)
        return None

    def _refuse_tag(self, node: Node, path: Path) -> None:
        wrong = f"the tag '{str(node.tag).removeprefix(_TAG)}' is not allowed"
        _add(self._source, path, _place(node), wrong, "write the value without a tag")


def _add_syntax_error(source: Source, error: MarkedYAMLError, text: str) -> None:
    mark = error.problem_mark or error.context_mark
    place = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    lines = text.splitlines()
    line = lines[place[0] - 1] if place[0] <= len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())] or line[place[1] - 1 : place[1]] == "\t":
        place = (place[0], line.index("\t") + 1)
        _add(source, (), place, "a tab in the indentation", "indent with spaces")
        return
    wrong = _first_line(error.problem or error.context or "it cannot be read")
    _add(source, (), place, f"not YAML: {wrong}", "check indentation, quotes and brackets here")


def _add(source: Source, path: Path, place: Place, message: str, remedy: str) -> None:
    source.findings.append((Finding(path, message, remedy), place))


def _place(node: Node) -> Place:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _is_empty(node: Node | None) -> bool:
    return node is None or (isinstance(node, ScalarNode) and node.tag == f"{_TAG}null")


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "it cannot be read"
