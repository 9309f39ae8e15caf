"""Every role change on record, from the control topics that answer."""

from replicator.failover.report import JsonObject
from replicator.topology.plan import Plan


def read_history(plan: Plan, link: str | None = None) -> list[JsonObject]:
    """Entries of ``history``: the reports of transitions with ``kind``, ``at`` and ``by``, oldest first.

    Reads every cluster of links whose roles can change; one that does not answer is left out.

    Raises:
        InputError: the topology has no such link.
    """
    raise NotImplementedError
