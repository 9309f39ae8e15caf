"""Which login a client was opened with, and whether it is time to open another client.

A client takes a changed password in place. For another certificate it has to be made anew, and then the
one that works is given up: so the brokers are asked first, by a connection of our own. While they do
not take the new certificate, clients go on with the old one, and that is told as a problem.
"""

import time

from replicator.errors import AuthenticationFailedError, ReplicatorError
from replicator.logins.cluster_login import ClusterLogin, login_of
from replicator.topology.plan import ClusterPlan

TRIAL_SECONDS = 3.0
AGAIN_SECONDS = 5.0


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
        """Whether clients have to be made anew, and the brokers take what they would log in with."""
        return any(
            version != login.tls_version
            for login, version in zip(self._logins, self._tls_versions, strict=True)
        ) and all(map(_accepted, self._logins))

    def changed(self) -> bool:
        """The same for clients that take no password in place."""
        return self.outdated() or any(
            version != login.version and tls_version == login.tls_version
            for login, version, tls_version in zip(
                self._logins, self._versions, self._tls_versions, strict=True
            )
        )


def _accepted(login: ClusterLogin) -> bool:
    """Whether a broker takes the login as it is now; asked once, or again after a while."""
    version, now = login.version, time.monotonic()
    if login.tokens is not None and login.tokens.problem() is not None:
        return False  # a client that is made without a new token soon stands still
    if login.accepted == version:
        return True
    if now < login.tried_at + AGAIN_SECONDS:
        return False
    login.tried_at = now
    from replicator.wire.leader import any_broker  # slow to import, seldom needed

    try:
        any_broker(
            login.cluster, client_id="replicator-login", deadline=now + TRIAL_SECONDS
        ).close()
    except AuthenticationFailedError as error:
        login.refusal = error
        return False
    except ReplicatorError:
        return False  # no broker answers: what works is not given up
    login.accepted, login.refusal = version, None
    return True
