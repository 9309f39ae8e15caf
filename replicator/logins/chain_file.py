"""A certificate chain in a file, for the client library, which sends the whole chain only from there."""

import functools
import hashlib
import tempfile
from pathlib import Path

from replicator.topology.file.secrets import ResolvedSecurity
from replicator.topology.plan import SecurityPlan


def chain_file(plan: SecurityPlan, security: ResolvedSecurity) -> Path:
    """A file with exactly the chain that is in use.

    That is the file the topology names, as long as it holds it; while something else is there that
    cannot be used, and for a chain from the environment, a copy of ours. A certificate is no secret.
    """
    chain = security.certificate or ""
    if plan.certificate is not None and plan.certificate.file is not None:
        path = Path(plan.certificate.file)
        try:
            if path.read_text(encoding="utf-8").rstrip("\r\n") == chain:
                return path
        except (OSError, UnicodeDecodeError):
            pass  # what was there before stays in use
    copy = Path(_directory().name, f"{hashlib.sha256(chain.encode()).hexdigest()[:16]}.pem")
    if not copy.exists():
        copy.write_text(chain, encoding="utf-8")
    return copy


@functools.cache
def _directory() -> "tempfile.TemporaryDirectory[str]":
    """Removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="replicator-chains-")
