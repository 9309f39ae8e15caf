"""Everything on record about a topology's roles: each role change and each drill, with evidence."""

from replicator.control.store.drills import read_drills
from replicator.failover.run.history import read_history
from replicator.identifiers import JsonObject
from replicator.topology.plan import Plan


def history(plan: Plan, link: str | None = None) -> JsonObject:
    """The object of ``history -o json``: entries of all kinds, oldest first; ``at`` in milliseconds.

    Works with no worker running; a cluster that does not answer is left out.

    Raises:
        InputError: the topology has no such link.
    """
    entries = [*read_history(plan, link), *(drill.entry() for drill in read_drills(plan, link))]
    return {"entries": sorted(entries, key=lambda entry: int(str(entry["at"])))}
