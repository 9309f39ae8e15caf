"""Whether an edited topology may be adopted: no alias may come to mean another cluster by an edit."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from replicator.control.records.pair_records import Binding
from replicator.control.store.bindings import binding_conflicts
from replicator.errors import ReplicatorError
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.topology.plan import ClusterPlan, Plan


def refuse_contradictions(
    old: Plan, new: Plan, bindings: Iterable[Binding], *, client_id: str
) -> None:
    """Asks the clusters that were edited for their ids. Blocking, for 10 s at most.

    A cluster that does not answer is no contradiction: its pairs check it again before they start.

    Args:
        old: the plan in force.
        new: the edited one; of another topology name it has bindings of its own, and all is well.
        bindings: on record in the control topics of the plan in force.
        client_id: for the connections.

    Raises:
        AliasConflictError: an alias is bound to another cluster, or a cluster to another alias.
    """
    edited = [cluster for cluster in new.clusters if cluster not in old.clusters]
    if not edited or new.topology != old.topology:
        return

    def ask(cluster: ClusterPlan) -> str | None:
        try:
            with ClusterAdmin(cluster, client_id=client_id) as admin:
                return admin.cluster_id()
        except ReplicatorError:
            return None

    with ThreadPoolExecutor(len(edited), thread_name_prefix="edit-check") as pool:
        answers = zip(edited, pool.map(ask, edited), strict=True)
        ids = {str(cluster.alias): found for cluster, found in answers if found is not None}
    held = {(binding.alias, binding.cluster_id): binding for binding in bindings}
    for conflict in binding_conflicts(held.values(), ids):
        raise conflict
