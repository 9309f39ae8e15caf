"""Does the data have the shape of a topology? Errors of the models, in the words of the file."""

import difflib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from replicator.topology.file.schema import Schema, fields_at, topology_schema
from replicator.topology.plan import Shape
from replicator.topology.problems import Finding, Path
from replicator.topology.spec.document import Document
from replicator.topology.spec.fields import shown

_NAME_REMEDY = (
    "use small letters, digits and dashes, 63 at most, with a letter or digit at both ends"
)
_Words = tuple[str, str]
Model = TypeVar("Model", bound=BaseModel)


def check_shape(data: Mapping[str, Any]) -> tuple[Document | None, tuple[Finding, ...]]:
    """The document, or what keeps the data from being one: every problem, not only the first."""
    return check_model(data, Document, topology_schema())


def check_model(
    data: Mapping[str, Any], model: type[Model], root: Schema
) -> tuple[Model | None, tuple[Finding, ...]]:
    """The same for any file format; `root` is the tidy schema of its model."""
    try:
        return model.model_validate(data), ()
    except ValidationError as error:
        details = error.errors(include_url=False)
        found = [
            finding for detail in details if (finding := _finding(detail, data, root)) is not None
        ]
        return None, tuple(dict.fromkeys(found))


def _finding(detail: ErrorDetails, data: Mapping[str, Any], root: Schema) -> Finding | None:
    path = _data_path(detail["loc"], data)
    kind, context = detail["type"], detail.get("ctx", {})
    at_key = "[key]" in detail["loc"]
    if kind == "complaint":
        return Finding(path, context["message"], context["remedy"], at_key=at_key)
    if kind == "extra_forbidden":
        return _unknown_field(path, data, root)
    if kind == "missing":
        return _missing(path, data, root)
    if kind.startswith("union_tag"):
        return _wrong_tag(path, kind, context, data, root)
    words = _WORDS.get(kind)
    message, remedy = (
        (detail["msg"], "see the topology reference")
        if words is None
        else words(path, detail["input"], context)
    )
    return Finding(path, message, remedy, at_key=at_key)


def _data_path(location: tuple[str | int, ...], data: object) -> Path:
    """Leaves out what pydantic adds to a location: names of union branches and `[key]`."""
    path: Path = ()
    for at, part in enumerate(location):
        if isinstance(data, Mapping):
            if part in data:
                data = data[part]
            elif at < len(location) - 1 or part == "[key]":
                continue
            path = (*path, part)
        elif isinstance(data, list) and isinstance(part, int):
            data = data[part] if part < len(data) else None
            path = (*path, part)
    return path


def _unknown_field(path: Path, data: Mapping[str, Any], root: Schema) -> Finding:
    name = str(path[-1])
    known = fields_at(path[:-1], data, root)
    if name == "<<":
        remedy = "merge keys are not supported; put what links share under spec.defaults"
        return Finding(path, "unknown field '<<'", remedy, at_key=True)
    close = difflib.get_close_matches(name.lower(), [field.lower() for field in known], n=1)
    meant = next((field for field in known if close and field.lower() == close[0]), None)
    remedy = f"did you mean '{meant}'?" if meant else f"known fields: {', '.join(sorted(known))}"
    return Finding(path, f"unknown field '{name}'", remedy, at_key=True)


def _missing(path: Path, data: Mapping[str, Any], root: Schema) -> Finding:
    name = str(path[-1])
    if name == "shape":
        return Finding(path, "'shape' is missing", f"add 'shape': {', '.join(get_args(Shape))}")
    description = fields_at(path[:-1], data, root).get(name, {}).get("description", "")
    first_sentence = description.split(". ")[0].rstrip(".").lower()
    remedy = f"add '{name}': {first_sentence}" if first_sentence else f"add '{name}'"
    return Finding(path, f"'{name}' is missing", remedy)


def _wrong_tag(
    path: Path, kind: str, context: Mapping[str, Any], data: Mapping[str, Any], root: Schema
) -> Finding | None:
    field = str(context["discriminator"]).strip("'")
    if kind == "union_tag_not_found":
        return _missing((*path, field), data, root)
    allowed = str(context["expected_tags"]).replace("'", "")
    message = f"'{context['tag']}' is not a {field}"
    return Finding((*path, field), message, _one_of(str(context["tag"]), allowed.split(", ")))


def _one_of(value: str, allowed: list[str]) -> str:
    close = difflib.get_close_matches(value, allowed, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"write {allowed[0]}" if len(allowed) == 1 else f"write one of: {', '.join(allowed)}"


def _literal(path: Path, value: object, context: Mapping[str, Any]) -> _Words:
    allowed = str(context["expected"]).replace("'", "").replace(" or ", ", ").split(", ")
    field = next((part for part in reversed(path) if isinstance(part, str)), "value")
    return f"'{shown(value)}' is not a valid {field}", _one_of(str(value), allowed)


def _type(wanted: str, remedy: str) -> Callable[[Path, object, Mapping[str, Any]], _Words]:
    def words(path: Path, value: object, _context: Mapping[str, Any]) -> _Words:
        # Under security a value may be a secret that was put in the wrong place.
        quoted = f"'{value}'" if isinstance(value, str) else shown(value)
        what = "the value" if "security" in path else quoted
        return f"{what} is not {wanted}", remedy

    return words


def _bound(word: str, key: str) -> Callable[[Path, object, Mapping[str, Any]], _Words]:
    def words(_path: Path, value: object, context: Mapping[str, Any]) -> _Words:
        return f"{shown(value)} is out of bounds", f"give at {word} {context[key]}"

    return words


def _too_short(path: Path, _value: object, context: Mapping[str, Any]) -> _Words:
    least = context.get("min_length", 1)
    return "too few entries" if path else "empty", f"give at least {least}"


def _too_long(_path: Path, _value: object, context: Mapping[str, Any]) -> _Words:
    return "too long", f"give at most {context.get('max_length')} characters"


def _pattern(path: Path, value: object, _context: Mapping[str, Any]) -> _Words:
    if "transforms" in path:
        return f"'{value}' is not an entry point", "write package.module:function"
    if "webhook" in path:
        return f"'{value}' is not a URL", "write http:// or https:// and so on"
    return f"'{value}' is not a name", _NAME_REMEDY


_MAPPING = _type("a mapping", "write fields below it, one 'name: value' per line")
_WORDS: dict[str, Callable[[Path, object, Mapping[str, Any]], _Words]] = {
    "literal_error": _literal,
    "enum": _literal,
    "bool_type": _type("true or false", "write true or false, without quotes"),
    "int_type": _type("a whole number", "write a number without quotes"),
    "string_type": _type("a text", "put it in quotes"),
    "list_type": _type("a list", "write [a, b], or one '- item' per line"),
    "dict_type": _MAPPING,
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "greater_than_equal": _bound("least", "ge"),
    "less_than_equal": _bound("most", "le"),
    "too_short": _too_short,
    "string_too_short": lambda _path, _value, _context: (
        "an empty text",
        "write something, or leave the field out",
    ),
    "string_too_long": _too_long,
    "string_pattern_mismatch": _pattern,
}
