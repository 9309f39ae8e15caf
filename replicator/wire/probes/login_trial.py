"""Whether brokers take a login: one connection that logs in and hangs up, with each of a few brokers.

A certificate may be known to one broker and not yet to another, and a client needs all of them: so one
broker that refuses it is enough to wait.
"""

import time

from replicator.errors import AuthenticationFailedError, ReplicatorError
from replicator.topology.file.secrets import ResolvedSecurity
from replicator.topology.plan import ClusterPlan

MOST_BROKERS = 3
TRIAL_SECONDS = 3.0


def log_in(cluster: ClusterPlan, security: ResolvedSecurity) -> None:
    """Logs in with exactly that to the first of the bootstrap servers.

    Raises:
        AuthenticationFailedError: one of them refuses it.
        ReplicatorError: none of them answers.
    """
    from replicator.wire.connection.connection import (
        BrokerConnection,  # slow to import, seldom needed
    )
    from replicator.wire.connection.leader import split_address

    silent: ReplicatorError | None = None
    answered = False
    for server in cluster.bootstrap_servers[:MOST_BROKERS]:
        try:
            BrokerConnection(
                cluster, split_address(server), client_id="replicator-login",
                deadline=time.monotonic() + TRIAL_SECONDS, security=security,
            ).close()  # fmt: skip
            answered = True
        except AuthenticationFailedError:
            raise
        except ReplicatorError as error:
            silent = error
    if silent is not None and not answered:
        raise silent
