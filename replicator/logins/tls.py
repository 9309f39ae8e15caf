"""The TLS context for our own sockets, from PEM text; it also tells whether that can be used at all."""

import ssl
import tempfile
from pathlib import Path

from replicator.errors import InputError
from replicator.topology.file.secrets import ResolvedSecurity
from replicator.topology.plan import ClusterPlan


def tls_context(cluster: ClusterPlan, security: ResolvedSecurity) -> ssl.SSLContext | None:
    """The context to wrap sockets with; None where the cluster speaks without TLS.

    Raises:
        InputError: a certificate or key is not valid PEM, or they do not belong together.
    """
    if security.protocol not in {"SSL", "SASL_SSL"}:
        return None
    try:
        context = ssl.create_default_context(cadata=security.ca)
        if security.certificate is not None:
            _load_identity(context, security)
    except (ssl.SSLError, ValueError) as error:
        raise InputError(
            f"ca, certificate or key cannot be used: {getattr(error, 'reason', None) or error}",
            subject=f"cluster:{cluster.alias}",
            remedy="Each must be PEM text, and the key that of the certificate.",
        ) from None
    if dict(cluster.kafka).get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    return context


def _load_identity(context: ssl.SSLContext, security: ResolvedSecurity) -> None:
    # The standard library reads them from files only; these exist for this call, for our eyes only.
    with tempfile.TemporaryDirectory(prefix="replicator-") as directory:
        certificate, key = Path(directory, "certificate.pem"), Path(directory, "key.pem")
        certificate.write_text(security.certificate or "")
        key.touch(mode=0o600)
        key.write_text(security.key or security.certificate or "")
        context.load_cert_chain(certificate, key, password=security.key_password)
