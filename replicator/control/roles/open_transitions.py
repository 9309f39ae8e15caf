"""Which transition has a link, by what control topics say. Pure.

An open transition holds its link until another one has begun a later epoch (a failover, while the
cluster with its journal was unreachable). It is overtaken then: resuming it would reverse the link
under applications that have moved since.
"""

from collections.abc import Iterable

from replicator.control.records.role_records import RoleRecord, TransitionRecord
from replicator.control.store.state import ControlState


def newest_role(states: Iterable[ControlState], link: str) -> RoleRecord | None:
    """The role record of the highest rank that is visible."""
    found = [record for state in states if (record := state.role(link)) is not None]
    return max(found, key=lambda record: record.role().rank, default=None)


def overtaken(one: TransitionRecord, newest: RoleRecord | None) -> bool:
    """Whether another transition began an epoch after this one had begun."""
    return newest is not None and newest.transition != one.id and newest.epoch > one.base_epoch


def open_transition(states: Iterable[ControlState], link: str) -> TransitionRecord | None:
    """The transition that has the link now; of several the one that was begun last."""
    seen = tuple(states)
    newest = newest_role(seen, link)
    held = [one for one in _open(seen, link) if not overtaken(one, newest)]
    return max(held, key=lambda one: one.at_ms, default=None)


def others_open(
    states: Iterable[ControlState], mine: TransitionRecord, *, besides: str = ""
) -> TransitionRecord | None:
    """Another transition that has the link besides ``mine``, and ``besides`` one with that id, which mine ends."""
    seen = tuple(states)
    newest = newest_role(seen, mine.link)
    others = (one for one in _open(seen, mine.link) if one.id not in {mine.id, besides})
    return next((one for one in others if not overtaken(one, newest)), None)


def overtaken_transitions(
    states: Iterable[ControlState], link: str
) -> tuple[TransitionRecord, ...]:
    """Open transitions that were overtaken; the next transition ends them."""
    seen = tuple(states)
    newest = newest_role(seen, link)
    return tuple(one for one in _open(seen, link) if overtaken(one, newest))


def _open(states: Iterable[ControlState], link: str) -> list[TransitionRecord]:
    found = {one.id: one for state in states for one in state.transitions(link)}
    return [one for one in found.values() if one.state == "open"]
