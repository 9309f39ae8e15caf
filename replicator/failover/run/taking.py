"""Taking the lock of a link: for a new transition, instead of one that it replaces, and from who runs it now."""

from collections.abc import Iterable

from replicator.control.records.role_records import TransitionRecord
from replicator.control.roles.open_transitions import newest_role, others_open
from replicator.control.store.state import ControlState
from replicator.errors import ReplicatorError
from replicator.failover.clusters.link_clusters import LinkClusters
from replicator.failover.rules.before import REPLACES, REST, SEEN, rest_of
from replicator.failover.steps.journal import Journal
from replicator.topology.roles import Role


def what_was_before(
    states: Iterable[ControlState], role: Role, *, replaced: TransitionRecord | None
) -> dict[str, object]:
    """Options of a new transition: the link's role, its state at rest, and the transition to be replaced."""
    rest = rest_of(role.state)
    newest = newest_role(states, role.link)
    begun = newest.transition if newest is not None else ""
    if replaced is not None and begun == replaced.id and role.state == "declared":
        rest = replaced.options.get(REST) or rest  # the state itself says nothing of before
    return {
        REST: rest,
        SEEN: list(role.rank),
        REPLACES: replaced.id if replaced is not None else "",
    }


def begin(
    journal: Journal,
    clusters: LinkClusters,
    *,
    replaced: TransitionRecord | None,
    overtaken: Iterable[TransitionRecord],
) -> None:
    """Takes the lock, ends the transition that is replaced, and those that were overtaken.

    Raises:
        RefusedError: another transition has the link, or it changed since it was checked; nothing was changed.
        ReplicatorError: the journal cluster does not answer.
    """
    journal.begin(replacing=replaced.id if replaced is not None else "")

    def check() -> None:
        _check_again(journal, clusters)

    check()
    if replaced is not None:
        journal.supersede(replaced, check)
    for one in overtaken:
        journal.supersede(one, lambda: None)


def take_over(journal: Journal, clusters: LinkClusters) -> None:
    """Takes an open transition from who runs it now, who may have come no further than its lock.

    Raises:
        RefusedError: it ended, or had not begun and the link changed meanwhile; nothing was changed.
        ReplicatorError: a cluster does not answer.
    """
    journal.seize()

    def check() -> None:
        if not journal.state.steps(journal.header.link, journal.header.id):
            _check_again(journal, clusters)

    check()
    replaced = journal.header.options.get(REPLACES)
    for state in _states(journal, clusters) if replaced else ():
        for one in state.transitions(clusters.link.name):
            if one.id == replaced and one.state == "open":
                journal.supersede(one, check)


def _states(journal: Journal, clusters: LinkClusters) -> list[ControlState]:
    """What the clusters that answer have on record."""
    states = [journal.state]
    home = journal.header.home
    other = clusters.old if home == clusters.new.alias else clusters.new
    if clusters.answers(other):
        try:
            states.append(clusters.control(other))
        except ReplicatorError as error:
            clusters.silent[str(other.alias)] = error
    return states


def _check_again(journal: Journal, clusters: LinkClusters) -> None:
    """Checks under the lock that the link did not change since the checks before the question.

    The answer may take hours. Two operators may also hold locks on different clusters: each writes its
    own first and reads the other's then, so that at least one of them withdraws.

    Raises:
        RefusedError: it changed; the lock was released.
    """
    states = _states(journal, clusters)
    options = journal.header.options
    other = others_open(states, journal.header, besides=str(options.get(REPLACES, "")))
    if other is not None:
        raise journal.withdraw(f"{other.by} began a {other.kind} of the link at the same moment")
    newest, seen = newest_role(states, clusters.link.name), options.get(SEEN)
    if newest is not None and seen and newest.role().rank != tuple(seen):
        raise journal.withdraw(
            f"the link changed since it was checked: {newest.active} is active in epoch "
            f"{newest.epoch}, {newest.state}"
        )
