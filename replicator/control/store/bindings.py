"""An alias means one cluster, for ever: the pure check behind alias bindings.

Aliases stand in the provenance of every copied record. Were one alias used for two clusters, loops
could not be told from new records any more, so a mismatch refuses to start.
"""

from collections.abc import Iterable, Mapping

from replicator.control.records.pair_records import Binding
from replicator.errors import AliasConflictError


def binding_conflicts(
    bindings: Iterable[Binding], cluster_ids: Mapping[str, str]
) -> tuple[AliasConflictError, ...]:
    """Compares what a cluster has on record with the clusters that answer now.

    Args:
        bindings: on record in one control topic.
        cluster_ids: the cluster id behind each alias of the topology, as far as they answered.
    """
    conflicts: list[AliasConflictError] = []
    held = tuple(bindings)
    seen: dict[str, str] = {}
    for alias, cluster_id in cluster_ids.items():
        if cluster_id in seen:
            conflicts.append(
                AliasConflictError(
                    f"'{seen[cluster_id]}' and '{alias}' are one cluster ({cluster_id})",
                    subject=f"cluster:{alias}",
                    remedy="Correct bootstrapServers of one of the two.",
                )
            )
        seen.setdefault(cluster_id, alias)
        for binding in held:
            if binding.alias == alias and binding.cluster_id != cluster_id:
                conflicts.append(
                    AliasConflictError(
                        f"'{alias}' is bound to cluster {binding.cluster_id}, but its "
                        f"bootstrapServers lead to cluster {cluster_id}",
                        subject=f"cluster:{alias}",
                        remedy="Correct bootstrapServers, or give the new cluster another alias.",
                    )
                )
            elif binding.cluster_id == cluster_id and binding.alias != alias:
                conflicts.append(
                    AliasConflictError(
                        f"cluster {cluster_id} is known as '{binding.alias}'; this topology calls "
                        f"it '{alias}'",
                        subject=f"cluster:{alias}",
                        remedy=f"Use the alias '{binding.alias}' for this cluster.",
                    )
                )
    return tuple(conflicts)


def missing_bindings(
    bindings: Iterable[Binding], cluster_ids: Mapping[str, str], *, at_ms: int
) -> tuple[Binding, ...]:
    """The bindings that have to be written."""
    known = {binding.alias for binding in bindings}
    return tuple(
        Binding(alias=alias, cluster_id=cluster_id, at_ms=at_ms)
        for alias, cluster_id in cluster_ids.items()
        if alias not in known
    )
