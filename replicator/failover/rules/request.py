"""What an operator (or a witness) asks for, and what is said while it runs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Kind = Literal["switchover", "failover", "failback"]
Tail = Literal["keep", "inject"]
"""What becomes of records that never reached the other side: kept aside, or put there."""


@dataclass(frozen=True, slots=True)
class TransitionRequest:
    """One role change.

    Attributes:
        kind: which procedure.
        link: name of the link.
        to: the cluster that is to be active; None lets a failback return to where it came from.
        source: the cluster that is left, on links of more than two clusters without an active side.
        by: who asks, for the journal.
        dry_run: shows every step and check, changes nothing.
        accept_loss: goes on although records will be missing.
        manual_fence: the operator states that writers are off the side that gives up its role.
        resume: goes on with an interrupted transition of this link; fences whoever ran it.
        roll_back: takes an interrupted transition back instead.
        take_over: a failover ends another open transition of the link.
        live_groups: goes on although groups are at work on the new side.
        tail: failback: what becomes of the unreplicated tail.
        export: failback: directory for the exported tail; None is the working directory.
        to_parquet: writes an exported tail once more, as Parquet; returns the file, None where it cannot.
        and_switch: failback: ends with a switchover; else with reversed mirroring.
        unreachable_after_seconds: how long the old side may take to answer before it counts as gone.
        drain_seconds: how long a switchover waits for lag 0 before it rolls back.
        groups_seconds: how long it waits for groups on the old side to reach the end.
    """

    kind: Kind
    link: str
    by: str
    to: str | None = None
    source: str | None = None
    dry_run: bool = False
    accept_loss: bool = False
    manual_fence: bool = False
    resume: bool = False
    roll_back: bool = False
    take_over: bool = False
    live_groups: bool = False
    tail: Tail = "keep"
    export: Path | None = None
    to_parquet: Callable[[Path], Path | None] = field(default=lambda _: None, repr=False)
    and_switch: bool = True
    unreachable_after_seconds: float = 5.0
    drain_seconds: float = 60.0
    groups_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class StepEvent:
    """Progress: a step began, says something, or ended."""

    step: str
    state: Literal["began", "says", "done", "failed"]
    text: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """Asked once, before anything changes, after the loss was stated.

    ``old_side_answers`` says that the side which gives up its role was there a moment ago.
    """

    text: str
    lost_records: int
    lost_seconds: float
    loss_known: bool = True
    old_side_answers: bool = False


OnStep = Callable[[StepEvent], None]
Answer = Callable[[Question], bool]
