"""The messages between a worker and its lane processes: one JSON object a line.

JSON, not pickle: a lane process never runs what it is sent. References to secrets travel, and a secret
itself only where its file holds it no longer.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import orjson
from pydantic import ConfigDict, Field, TypeAdapter

from replicator.dataplane.transport.spec import LaneSpec
from replicator.dataplane.transport.stats_changes import LaneChange
from replicator.topology.file.secrets import ResolvedSecurity
from replicator.topology.plan import ClusterPlan


@dataclass(frozen=True, slots=True)
class StartLane:
    """Take the lane over and run it; for a running lane, go on with the new spec."""

    spec: LaneSpec
    kind: Literal["start"] = "start"


@dataclass(frozen=True, slots=True)
class KeepLogin:
    """The last login that brokers took, while its files hold another that they refuse."""

    cluster: ClusterPlan
    security: ResolvedSecurity
    kind: Literal["login"] = "login"


@dataclass(frozen=True, slots=True)
class StopLane:
    """Commit what was read and close; LaneStopped follows, with the same ``token``."""

    pair: str
    lane: int
    token: int
    kind: Literal["stop"] = "stop"


@dataclass(frozen=True, slots=True)
class LaneStopped:
    """The lane has ended; ``fenced`` when another owner took it. ``token`` 0: by itself."""

    pair: str
    lane: int
    token: int
    fenced: bool
    reason: str
    kind: Literal["stopped"] = "stopped"


@dataclass(frozen=True, slots=True)
class Stats:
    """Statistics of the lanes that have new ones, at most twice a second."""

    lanes: tuple[LaneChange, ...]
    kind: Literal["stats"] = "stats"


@dataclass(frozen=True, slots=True)
class LostRange:
    """Source data was given up by policy or by an operator; kept in the journal."""

    pair: str
    link: str
    topic: str
    partition: int
    lost_from: int
    lost_to: int
    detail: str
    kind: Literal["gap"] = "gap"


@dataclass(frozen=True, slots=True)
class LogLine:
    """A log event of the lane process; the worker writes it with its own fields."""

    level: str
    event: str
    fields: dict[str, str]
    kind: Literal["log"] = "log"


Command = Annotated[StartLane | StopLane | KeepLogin, Field(discriminator="kind")]
Event = Annotated[LaneStopped | Stats | LostRange | LogLine, Field(discriminator="kind")]

_COMMANDS: TypeAdapter[StartLane | StopLane | KeepLogin] = TypeAdapter(
    Command,
    config=ConfigDict(hide_input_in_errors=True),  # it may hold a secret
)
_EVENTS: TypeAdapter[LaneStopped | Stats | LostRange | LogLine] = TypeAdapter(Event)


def encode(
    message: StartLane | StopLane | KeepLogin | LaneStopped | Stats | LostRange | LogLine,
) -> bytes:
    """One line, newline included."""
    return orjson.dumps(message) + b"\n"


def decode_command(line: bytes) -> StartLane | StopLane | KeepLogin:
    """Reads one line from the worker.

    Raises:
        pydantic.ValidationError: when the line is not a command.
    """
    return _COMMANDS.validate_json(line)


def decode_event(line: bytes) -> LaneStopped | Stats | LostRange | LogLine:
    """Reads one line from a lane process.

    Raises:
        pydantic.ValidationError: when the line is not an event.
    """
    return _EVENTS.validate_json(line)
