"""What an operator (or automatic failover) requests, and the progress that is reported."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from replicator.errors import InputError

Kind = Literal["switchover", "failover", "failback"]
Tail = Literal["keep", "inject"]
"""What becomes of records that never reached the other cluster: only exported, or injected there."""

OpenTransactions = Literal["wait", "fence", "refuse"]
"""What happens to transactions that applications left open on the cluster that is left."""


@dataclass(frozen=True, slots=True)
class TransitionRequest:
    """One role change.

    Attributes:
        kind: which procedure.
        link: name of the link.
        to: the cluster that is to be active; None means the one that is not active.
        source: the cluster that is left, on links without an active cluster.
        by: who requests it, for the journal.
        dry_run: shows every step and check, changes nothing.
        accept_loss: proceeds although records will be missing.
        manual_fence: the operator confirms that no application writes to the old active cluster.
        resume: resumes an open transition of this link; the process that runs it now is stopped.
        roll_back: rolls an open transition back instead.
        take_over: a failover ends another open transition of the link.
        live_groups: proceeds although groups have members on the new cluster.
        open_transactions: switchover, and the tail of a failback: waited for, aborted, or refused.
        tail: failback: what becomes of the unreplicated tail.
        tail_topics: failback: the same for single topics.
        export: failback: directory for the exported tail; None is the working directory.
        to_parquet: writes an exported tail once more, as Parquet; returns the file, None where it cannot.
        and_switch: failback: ends with a switchover; else with reversed mirroring.
        unreachable_after_seconds: how long the old cluster may take to answer before it counts as down.
        contact_seconds: how old the last contact with a silent cluster may be to bound the loss.
        drain_seconds: how long a switchover waits for lag 0 before it rolls back.
        groups_seconds: how long it waits for groups on the old cluster to reach the end.
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
    open_transactions: OpenTransactions = "wait"
    tail: Tail = "keep"
    tail_topics: Mapping[str, Tail] = field(default_factory=dict)
    export: Path | None = None
    to_parquet: Callable[[Path], Path | None] = field(default=lambda _: None, repr=False)
    and_switch: bool = True
    unreachable_after_seconds: float = 5.0
    contact_seconds: float = 60.0
    drain_seconds: float = 60.0
    groups_seconds: float = 10.0


def tail_choices(words: Iterable[str]) -> tuple[Tail, dict[str, Tail]]:
    """The choice for all topics and those for single ones, from ``keep``, ``inject``, ``TOPIC=inject``.

    Raises:
        InputError: a word is none of these.
    """
    general: Tail = "keep"
    single: dict[str, Tail] = {}
    for word in words:
        topic, _, choice = word.rpartition("=")
        if choice not in {"keep", "inject"} or (not topic and "=" in word):
            raise InputError(
                f"'{word}' is no choice for a tail", subject="--tail",
                remedy="Give keep, inject, or TOPIC=keep and TOPIC=inject for single topics.",
            )  # fmt: skip
        chosen: Tail = "inject" if choice == "inject" else "keep"
        if topic:
            single[topic] = chosen
        else:
            general = chosen
    return general, single


@dataclass(frozen=True, slots=True)
class StepEvent:
    """Progress: a step began, reported something, or ended."""

    step: str
    state: Literal["began", "progress", "done", "failed"]
    text: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """Asked once, before anything changes, after the loss was stated.

    ``old_side_answers`` says whether the cluster that gives up its role answered a moment ago.
    """

    text: str
    lost_records: int
    loss_known: bool = True
    old_side_answers: bool = False


OnStep = Callable[[StepEvent], None]
Answer = Callable[[Question], bool]
