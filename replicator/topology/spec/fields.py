"""The kinds of values that the file format is made of: durations, sizes, aliases, patterns, secrets.

Each says what is wrong and how to fix it in the words of the file, through `complaint`, and carries
its JSON Schema, so that editors and the chart refuse the same things.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from replicator.policy.copies.provenance import ALIAS_PATTERN, MAX_ALIAS_LENGTH
from replicator.policy.copies.selection import pattern_problem
from replicator.topology.spec.units import (
    DURATION_PATTERN,
    SIZE_PATTERN,
    parse_duration,
    parse_size,
)


class Spec(BaseModel):
    """Base of every object in the file: unknown fields are refused, nothing is coerced."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        alias_generator=to_camel,
        use_attribute_docstrings=True,
    )


def complaint(message: str, remedy: str) -> PydanticCustomError:
    """A validation error that says what is wrong and how to fix it."""
    # Both travel as context, so that braces in them are never taken for a template.
    return PydanticCustomError("complaint", "{message}", {"message": message, "remedy": remedy})


class Bounded(ABC):
    """A quantity with a unit, as annotation of a field: `Annotated[float, Duration(...)]`."""

    kind: ClassVar[str]
    remedy: ClassVar[str]
    pattern: ClassVar[str]

    def __init__(self, *, least: str, most: str) -> None:
        self.least = least
        self.most = most
        self._bounds = (self.read(least), self.read(most))

    @staticmethod
    @abstractmethod
    def read(text: str) -> float:
        """The quantity in its base unit; raises ValueError for any other text."""

    def parse(self, value: object) -> float:
        """Reads a field's value, or says what is wrong with it."""
        if not isinstance(value, str):
            raise complaint(f"{shown(value)} is not a {self.kind}", self.remedy)
        try:
            quantity = self.read(value)
        except ValueError as error:
            raise complaint(str(error), self.remedy) from error
        low, high = self._bounds
        if not low <= quantity <= high:
            bounds = f"give at least {self.least} and at most {self.most}"
            raise complaint(f"{value} is out of bounds", bounds)
        return quantity

    def __get_pydantic_core_schema__(
        self, _source: object, _handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        bounds = f"A {self.kind} from {self.least} to {self.most}."
        return {"type": "string", "pattern": self.pattern, "description": bounds}


class Duration(Bounded):
    """Seconds inside, `200ms` in the file."""

    kind = "duration"
    remedy = "write a number and a unit (ms, s, m, h), such as 200ms or 5s"
    pattern = DURATION_PATTERN
    read = staticmethod(parse_duration)


class Size(Bounded):
    """Bytes inside, `50MB` in the file."""

    kind = "size"
    remedy = "write a number and a unit, such as 64KiB or 50MB"
    pattern = SIZE_PATTERN
    read = staticmethod(parse_size)


def _checked_pattern(topic: bool) -> Callable[[str], str]:
    def check(value: str) -> str:
        problem = pattern_problem(value, topic=topic)
        if problem is not None:
            raise complaint(problem, "write a name, a glob (*, ?), or 'regex:' and an expression")
        return value

    return check


def shown(value: object) -> str:
    """A value as the file spells it."""
    if value is None:
        return "an empty value"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list) else str(value)


def _timestamp(value: object) -> int:
    remedy = "write an ISO 8601 time with its zone, such as 2026-01-01T00:00:00Z"
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None:
        raise complaint(f"{shown(value)} is not a point in time", remedy)
    if moment.tzinfo is None:
        raise complaint(f"{value} has no time zone", remedy)
    milliseconds = round(moment.timestamp() * 1000)
    if milliseconds < 0:
        raise complaint(f"{value} is before 1970", remedy)
    return milliseconds


def _setting(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise complaint(f"{shown(value)} is not a setting", "write a text, a number, or true or false")


Alias = Annotated[str, Field(pattern=f"^{ALIAS_PATTERN}$", max_length=MAX_ALIAS_LENGTH)]
"""Name of a cluster, link or topology: small letters, digits and dashes; no dots."""

TopicPattern = Annotated[
    str, StringConstraints(min_length=1), AfterValidator(_checked_pattern(True))
]
GroupPattern = Annotated[
    str, StringConstraints(min_length=1), AfterValidator(_checked_pattern(False))
]

Timestamp = Annotated[
    int,
    BeforeValidator(_timestamp),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-01-01T00:00:00Z"]}),
]
"""A point in time, in milliseconds since 1970 inside."""

Setting = Annotated[
    str,
    BeforeValidator(_setting),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]
"""A Kafka setting: text, number or boolean in the file, text inside."""


class Secret(Spec):
    """Where a secret is found: in an environment variable or in a file. Never the secret itself."""

    env: str | None = Field(default=None, min_length=1)
    """Name of the environment variable."""
    file: str | None = Field(default=None, min_length=1)
    """Path of the file; it is read again when the secret is needed, so that it can be rotated."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_literals(cls, value: object) -> object:
        if isinstance(value, str | int | float):
            raise complaint(
                "a secret cannot stand in the file itself",
                "refer to it: {env: VARIABLE} or {file: /path}",
            )
        if isinstance(value, Mapping) and not value.keys() - {"env", "file"} and len(value) != 1:
            raise complaint(
                "give exactly one of env and file", "write {env: VARIABLE} or {file: /path}"
            )
        return value
