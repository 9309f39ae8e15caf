"""What a client needs to find the new active cluster, as Kafka's own properties. Pure; never a secret."""

from replicator.topology.plan import ClusterPlan, LinkPlan, SecretRef


def client_properties(link: LinkPlan, cluster: ClusterPlan) -> str:
    """A ``clients.properties``: addresses and security settings; secrets are left to the client."""
    security = cluster.security
    lines = [
        f"# Clients of link '{link.name}': {cluster.alias} is the active cluster.",
        f"bootstrap.servers={','.join(cluster.bootstrap_servers)}",
        f"security.protocol={security.protocol}",
    ]
    if security.mechanism is not None:
        lines.append(f"sasl.mechanism={security.mechanism}")
        lines.append("# sasl.jaas.config: the client's own user and password")
    if security.protocol in {"SSL", "SASL_SSL"}:
        lines.append(f"# ssl.truststore: the CA that the replicator finds in {_place(security.ca)}")
    lines += [
        "# Consumers of copies must not see records of open transactions:",
        "isolation.level=read_committed",
    ]
    return "\n".join(lines) + "\n"


def _place(reference: SecretRef | None) -> str:
    if reference is None:
        return "the system's store"
    return f"${reference.env}" if reference.env is not None else str(reference.file)
