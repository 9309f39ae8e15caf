"""Runs one schedule of role changes (``simulated_transitions.py``) and judges it.

``run_schedule`` returns what was broken; nothing is the aim.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from simulated_clients import Admin, Groups, Probe, Transactions, export_tail, read_tail
from simulated_link import apply_flow, roles_in
from simulated_sides import LINK, PLACES, numbers
from simulated_transitions import STEPS, Chances, Killed, World

from replicator.control.roles.link_facts import link_facts
from replicator.control.roles.open_transitions import open_transition
from replicator.control.store import controller_writer
from replicator.failover.clusters import (
    fencing,
    lag,
    link_clusters,
    source_transactions,
    tail_writer,
)
from replicator.failover.rules.request import TransitionRequest
from replicator.failover.run import executor, runner
from replicator.failover.steps import (
    failback,
    failover,
    journal,
    journal_writer,
    preflight,
    switchover,
)
from replicator.kafka.logs import log_writer
from replicator.topology.roles import role_in_force
from replicator.wire.requests import open_transactions

ROUNDS = 12
"""Within which an operator whom nothing disturbs any more has the link mirroring."""


class _Quiet:
    """Thousands of role changes have nothing to tell."""

    def info(self, *_: Any, **__: Any) -> None:
        """Nothing."""

    warning = info


@contextlib.contextmanager
def in_world(world: World) -> Iterator[None]:
    """The product's role changes with the world's clients in place of the real ones."""

    def prepare(clusters: Any, source: Any, **_: Any) -> tuple[str, ...]:
        world.moment()
        world.side(clusters.other(source)).check()
        apply_flow(world, source)
        return ()

    def transactions(cluster: Any, id_: str, **_: Any) -> Transactions:
        return Transactions(world, cluster, id_)

    def tail(cluster: Any, ranges: Any, *, seen_by: str, arrivals: Any, **_: Any) -> Any:
        return read_tail(world, cluster, ranges, seen_by=seen_by, arrivals=arrivals)

    def nothing(*_: Any, **__: Any) -> None:
        world.moment()

    def groups(*_: Any, **__: Any) -> Groups:
        return Groups(world)

    stands: list[tuple[Any, str, Any]] = [
        (runner, "read_roles", world.read_roles),
        (runner.secrets, "token_hex", lambda _: f"{world.draw.getrandbits(40):010x}"),
        (executor, "log", _Quiet()),
        (link_clusters, "read_control", world.read_control),
        (link_clusters, "ClusterAdmin", lambda cluster, **_: Admin(world, cluster)),
        (lag, "read_checkpoints", world.read_checkpoints),
        (lag, "PartitionProbe", lambda cluster, **_: Probe(world, cluster)),
        (fencing, "topic_acls", world.topic_acls),
        (open_transactions, "open_transactions", world.open_transactions),
        (journal, "ensure_compacted_topic", nothing),
        (journal_writer, "ensure_compacted_topic", nothing),
        (log_writer.LogWriter, "end", lambda _: 0),  # no broker of the model shows the past
        (switchover, "prepare_reverse_flow", prepare),
        (failback, "prepare_reverse_flow", prepare),
        (failback, "read_tail", tail),
        (failback, "export_tail", export_tail),
        (failover, "positions_on_new", lambda _: ({}, None)),
        *((module, "GroupMove", groups) for module in (switchover, preflight, failover)),
        *(
            (module, "TransactionWriter", transactions)
            for module in (log_writer, controller_writer, tail_writer, source_transactions)
        ),
    ]
    kept = [(module, name, getattr(module, name)) for module, name, _ in stands]
    for module, name, stand in stands:
        setattr(module, name, stand)
    try:
        yield
    finally:
        for module, name, true in kept:
            setattr(module, name, true)


def run_schedule(seed: int, *, chances: Chances | None = None) -> list[str]:
    """Runs one schedule; returns what was broken."""
    world = World(seed, chances=chances or Chances())
    with in_world(world):
        for _ in range(STEPS):
            if world.broken:
                return world.broken
            with contextlib.suppress(Killed):
                world.something()
        _end(world)
    return world.broken


def _end(world: World) -> None:
    """Nothing disturbs any more; an operator puts the link in order, and lanes copy to the end."""
    world.calm = True
    for side in world.sides.values():
        side.up = side.calm = True
        side.decide_all()
        side.end_transaction("committed")
    for _ in range(ROUNDS):
        world.copy_everything()
        request = _in_order(world)
        if request is None:
            break
        world.operate(request)
    else:
        world.tell(f"the link is not in order again: {world.last}; {world.reports[-1:]}")
        return
    world.copy_everything()
    _judge_the_end(world)


def _in_order(world: World) -> TransitionRequest | None:
    """What an operator does next; None once the link mirrors and no transition is open."""
    seen = [side.settled() for side in world.sides.values()]
    common = {"link": LINK, "by": "operator", "accept_loss": True, "tail": "inject"}
    held = open_transition(seen, LINK)
    if held is not None:
        return TransitionRequest(kind=held.kind, resume=True, **common)
    role = role_in_force(world.plan.link(LINK), roles_in(seen))
    if role.state == "conflict":
        return TransitionRequest(kind="failover", to="west", **common)
    if role.state in {"promoted", "salvaging", "realigning", "declared", "promoting"}:
        return TransitionRequest(kind="failback", and_switch=False, **common)
    if link_facts(
        seen, world.plan.link(LINK), role
    ).problems:  # a fence of the active cluster is on record
        return TransitionRequest(kind="switchover", roll_back=True, **common)
    return None


def _judge_the_end(world: World) -> None:
    seen = [side.settled() for side in world.sides.values()]
    role = role_in_force(world.plan.link(LINK), roles_in(seen))
    active, passive = (
        world.sides[role.active],
        world.sides["east" if role.active == "west" else "west"],
    )
    if world.left_rules:
        return
    if not active.takes_writers():
        world.tell(f"writers are still fenced on {active.alias}, which is active: {active.rules}")
    for place in PLACES:
        here, there = active.committed(place), passive.committed(place)
        only_here = set(numbers(here)) - set(numbers(there))
        only_there = set(numbers(there)) - set(numbers(here))
        if only_here or only_there:
            world.tell(
                f"{place}: only on {active.alias} (active) {sorted(only_here)}, only on "
                f"{passive.alias} {sorted(only_there)}"
            )
