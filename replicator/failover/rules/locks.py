"""The lock of a link as a second operator meets it. Pure."""

from dataclasses import dataclass

from replicator.control.records.role_records import TransitionRecord
from replicator.errors import RefusedError
from replicator.failover.rules.commands import resume_command, rollback_command


@dataclass(frozen=True, slots=True)
class Lock:
    """The transition that holds a link."""

    record: TransitionRecord

    def refusal(self, now_ms: int) -> RefusedError:
        """The error that a second operator gets."""
        one = self.record
        minutes = max(0, now_ms - one.at_ms) / 60_000
        back = rollback_command(one.kind, one.link)
        either = f"; or roll it back: '{back}'" if back else ""
        return RefusedError(
            f"a {one.kind} of link '{one.link}' from {one.source} to {one.target} is open: begun by "
            f"{one.by} {minutes:.1f} min ago (id {one.id})",
            subject=one.link,
            remedy=f"Wait for it; or resume it: '{resume_command(one.kind, one.link)}'{either}. "
            "The process that runs it now is stopped.",
        )
