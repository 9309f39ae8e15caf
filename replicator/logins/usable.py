"""Whether authorities, certificate and key can be used by a client at all."""

from replicator.errors import InputError
from replicator.logins.expiry import ends_of_certificates
from replicator.topology.file.secrets import ResolvedSecurity
from replicator.topology.plan import ClusterPlan


def check_usable(cluster: ClusterPlan, security: ResolvedSecurity) -> None:
    """Tells what no client could use.

    Raises:
        InputError: authorities, certificate or key are not PEM, or do not belong together.
    """
    if security.ca is None and security.certificate is None:
        return
    from replicator.logins.tls import tls_context  # slow to import

    tls_context(cluster, security)
    try:
        ends_of_certificates(f"{security.ca or ''}\n{security.certificate or ''}")
    except ValueError as error:
        raise InputError(
            f"ca or certificate cannot be used: {error}",
            subject=f"cluster:{cluster.alias}",
            remedy="Each must be PEM text.",
        ) from None
