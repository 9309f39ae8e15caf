"""Which login a client was opened with, and whether it is time to open another client.

A client takes a changed password in place. For another certificate it has to be made anew, and then the
one that works is given up. Brokers have taken the new one by then: see ``ClusterLogin``.
"""

from replicator.logins.cluster_login import ClusterLogin, login_of
from replicator.topology.plan import ClusterPlan


class OpenedWith:
    """Made just before the clients of some clusters are opened; holds their logins for as long."""

    def __init__(self, *clusters: ClusterPlan) -> None:
        """Reads what there is now.

        Raises:
            SecretUnavailableError: a secret is missing.
            InputError: certificate or key cannot be used.
        """
        self._logins = tuple(map(login_of, clusters))
        for login in self._logins:
            login.security()
        self._versions = tuple(login.version for login in self._logins)
        self._tls_versions = tuple(login.tls_version for login in self._logins)

    def outdated(self) -> bool:
        """Whether clients have to be made anew, and would find what they log in with."""
        return any(
            version != login.tls_version
            for login, version in zip(self._logins, self._tls_versions, strict=True)
        ) and all(map(_ready, self._logins))

    def changed(self) -> bool:
        """The same for clients that take no password in place."""
        return self.outdated() or any(
            version != login.version and tls_version == login.tls_version
            for login, version, tls_version in zip(
                self._logins, self._versions, self._tls_versions, strict=True
            )
        )


def _ready(login: ClusterLogin) -> bool:
    """A client that is made without a new token soon stands still."""
    return login.tokens is None or login.tokens.problem() is None
