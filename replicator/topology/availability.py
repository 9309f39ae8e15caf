"""Fields of the format whose capability this release does not have yet.

They are refused when they ask for something, never ignored in silence. A capability that lands
removes its line here, and nothing else.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel

from replicator.topology.problems import Finding, Path


@dataclass(frozen=True, slots=True)
class NotYet:
    """A policy field, and the values of it that ask for nothing new."""

    field: tuple[str, ...]
    harmless: tuple[object, ...]


NOT_YET: tuple[NotYet, ...] = ()


def unavailable(policy: BaseModel, path: Path) -> Iterator[Finding]:
    """What a policy as given at one place asks for that is not there yet."""
    for entry in NOT_YET:
        value = given(policy, entry.field)
        if value is None or value in entry.harmless:
            continue
        shown = f"{'.'.join(entry.field)}: {value}" if isinstance(value, str) else entry.field[-1]
        if value is True:
            shown = f"{'.'.join(entry.field)}: true"
        yield Finding((*path, *entry.field), f"'{shown}' is not available yet", "remove it")


def given(spec: BaseModel | None, field: tuple[str, ...]) -> object:
    """The value of a field by its name in the file; None when it is not given."""
    value: object = spec
    for name in field:
        if not isinstance(value, BaseModel):
            return None
        value = getattr(value, _attribute(type(value), name))
    return value


def _attribute(model: type[BaseModel], name: str) -> str:
    return next(field for field, info in model.model_fields.items() if info.alias == name)
