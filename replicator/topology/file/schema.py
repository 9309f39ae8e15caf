"""The JSON Schema of the topology file, generated from the models.

The committed copy is `topologies/schema.json`; editors, the chart and the reference read it.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from replicator.topology.problems import Path
from replicator.topology.spec.document import Document

Schema = dict[str, Any]


@lru_cache(maxsize=1)
def topology_schema() -> Schema:
    """The schema, with descriptions, without what pydantic adds for its own use."""
    schema = tidy_schema(Document)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "Replicator topology",
    }


def tidy_schema(model: type[BaseModel]) -> Schema:
    """The schema of any model of a file format, without what pydantic adds for its own use."""
    return _tidied(model.model_json_schema(by_alias=True))


def fields_at(path: Path, data: object, root: Schema | None = None) -> dict[str, Schema]:
    """The fields that may stand at a path of a document, by name.

    `data` is the document: its `shape` and `method` values choose between alternatives. `root` is
    the schema of the format, the topology's by default.
    """
    root = topology_schema() if root is None else root
    schemas = [root]
    for part in path:
        schemas = [
            below for schema in _branches(schemas, data, root) for below in _below(schema, part)
        ]
        data = _data_below(data, part)
    fields: dict[str, Schema] = {}
    for schema in _branches(schemas, data, root):
        fields.update(schema.get("properties", {}))
    return fields


def resolved(schema: Schema, root: Schema | None = None) -> Schema:
    """Follows a reference into the definitions, keeping what stands beside it."""
    name = schema.get("$ref")
    if name is None:
        return schema
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    definitions = (topology_schema() if root is None else root)["$defs"]
    return {**definitions[name.removeprefix("#/$defs/")], **beside}


def _branches(schemas: list[Schema], data: object, root: Schema) -> list[Schema]:
    found: list[Schema] = []
    for schema in (resolved(one, root) for one in schemas):
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices is None:
            found.append(schema)
            continue
        branches = _branches(choices, data, root)
        fitting = [branch for branch in branches if _fits(branch, data)]
        found.extend(fitting or branches)
    return found


def _fits(schema: Schema, data: object) -> bool:
    """False where a constant field of the alternative says something else than the document."""
    if not isinstance(data, Mapping):
        return True
    constants = [
        (name, field["const"])
        for name, field in schema.get("properties", {}).items()
        if "const" in field
    ]
    return all(data.get(name) == value for name, value in constants)


def _below(schema: Schema, part: str | int) -> Iterator[Schema]:
    if isinstance(part, int):
        if "items" in schema:
            yield schema["items"]
    elif part in schema.get("properties", {}):
        yield schema["properties"][part]
    elif isinstance(schema.get("additionalProperties"), dict):
        yield schema["additionalProperties"]
    else:
        yield from schema.get("patternProperties", {}).values()


def _data_below(data: object, part: str | int) -> object:
    if isinstance(data, Mapping):
        return data.get(part)
    if isinstance(data, list) and isinstance(part, int) and part < len(data):
        return data[part]
    return None


def _tidied(node: Schema) -> Schema:
    """Drops what pydantic adds: titles, null alternatives and null defaults."""
    tidy: Schema = {
        key: _tidied_below(key, value)
        for key, value in node.items()
        if key not in {"title", "discriminator"} and not (key == "default" and value is None)
    }
    if "patternProperties" in tidy:
        tidy["additionalProperties"] = False  # or any name would do, unchecked
    choices = [choice for choice in tidy.get("anyOf", []) if choice != {"type": "null"}]
    if "anyOf" in tidy and len(choices) < len(node["anyOf"]):
        tidy["anyOf"] = choices
    if isinstance(tidy.get("description"), str):
        tidy["description"] = " ".join(tidy["description"].split())
    if len(choices) == 1:
        beside = {key: value for key, value in tidy.items() if key != "anyOf"}
        # The field's own description wins; a description of the type adds its bounds.
        inner = dict(choices[0])
        if "description" in inner and "description" in beside:
            beside["description"] = f"{beside['description']} {inner.pop('description')}"
        return {**inner, **beside}
    return tidy


def _tidied_below(key: str, value: object) -> object:
    if key in {"properties", "$defs"} and isinstance(value, dict):
        return {name: _tidied(schema) for name, schema in value.items()}
    if isinstance(value, list):
        return [_tidied(item) if isinstance(item, dict) else item for item in value]
    return _tidied(value) if isinstance(value, dict) else value
