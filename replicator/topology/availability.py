"""Fields of the format whose capability this release does not have yet.

They are refused when they ask for something, never ignored in silence. A capability that lands
removes its line here, and nothing else.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel

from replicator.topology.problems import Finding, Path
from replicator.topology.sync_spec import GroupSyncSpec


@dataclass(frozen=True, slots=True)
class NotYet:
    """A policy field, and the values of it that ask for nothing new."""

    field: tuple[str, ...]
    harmless: tuple[object, ...]


NOT_YET: tuple[NotYet, ...] = (
    NotYet(("engine",), ("auto", "records")),
    NotYet(("sync", "acls"), (False,)),
    NotYet(("bulkSync", "mode"), ("never",)),
    NotYet(("runtime",), ("workers",)),
    NotYet(("mm2Compatibility",), (False,)),
    NotYet(("fencing",), ()),
    NotYet(("hooks",), ()),
)

MECHANISMS_NOT_YET = frozenset({"OAUTHBEARER"})

GROUP_SYNC_AVAILABLE = True
"""Group positions are on by default, so only a file that asks for them by name is warned."""


def unavailable(policy: BaseModel, path: Path) -> Iterator[Finding]:
    """What a policy as given at one place asks for that is not there yet."""
    for entry in NOT_YET:
        value = given(policy, entry.field)
        if value is None or value in entry.harmless:
            continue
        said = f"{'.'.join(entry.field)}: {value}" if isinstance(value, str) else entry.field[-1]
        if value is True:
            said = f"{'.'.join(entry.field)}: true"
        yield Finding((*path, *entry.field), f"'{said}' is not available yet", "remove it")


def group_sync_asked(policy: BaseModel) -> Path | None:
    """Where a policy asks for group positions by name, or None."""
    if given(policy, ("groups", "include")):
        return ("groups", "include")
    sync = given(policy, ("sync", "groups"))
    if isinstance(sync, GroupSyncSpec) and sync.enabled is not False:
        return ("sync", "groups")
    return None


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
