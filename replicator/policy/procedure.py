"""What runs around a role change: frozen values, compiled from ``fencing`` and ``hooks``."""

from dataclasses import dataclass
from typing import Literal

EVERYBODY = "User:*"

FencingMethod = Literal["acl", "command", "manual"]
Moment = Literal["before-fence", "after-fence", "before-promote", "after-promote"]


@dataclass(frozen=True, slots=True)
class Fencing:
    """How writers are fenced on a side that gives up its role.

    ``principals`` are for ``acl``, without any it is everybody; ``fence`` and ``unfence`` are argument
    lists for ``command``. ``fence_passive``: the side that takes over is fenced as well until then.
    """

    method: FencingMethod
    principals: tuple[str, ...] = ()
    fence: tuple[str, ...] = ()
    unfence: tuple[str, ...] = ()
    fence_passive: bool = False

    @property
    def denied(self) -> tuple[str, ...]:
        """Whom the rules of an ``acl`` fence name; nobody with the other methods."""
        return (self.principals or (EVERYBODY,)) if self.method == "acl" else ()


@dataclass(frozen=True, slots=True)
class Hook:
    """One command or webhook at one moment, with its time limit in seconds."""

    moment: Moment
    command: tuple[str, ...] = ()
    webhook: str = ""
    timeout_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Automatic:
    """Promotion by itself: exactly one witness, and how long all must agree.

    ``max_lost_records`` is what may be lost at most by estimate; more waits for a person.
    """

    witness_cluster: str = ""
    witness_http: str = ""
    after_seconds: float = 30.0
    interval_seconds: float = 2.0
    max_lost_records: int = 0


@dataclass(frozen=True, slots=True)
class Procedure:
    """Everything a link says about its role changes."""

    fencing: Fencing | None = None
    hooks: tuple[Hook, ...] = ()
    automatic: Automatic | None = None
