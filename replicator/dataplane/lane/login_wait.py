"""Between two sessions of a lane: where its login was refused, another one is tried as soon as there is one."""

import threading
import time
from collections.abc import Sequence

from replicator.logins.cluster_login import ClusterLogin

_LOOK_SECONDS = 0.2

Tried = tuple[int, ...]
"""By cluster, which login a session was begun with."""


def tried(logins: Sequence[ClusterLogin]) -> Tried:
    """Which logins a session that begins now has."""
    return tuple(login.version for login in logins)


def wait_for_login(
    logins: Sequence[ClusterLogin], before: Tried, wake: threading.Event, *, seconds: float
) -> None:
    """Returns after so many seconds, when woken up, or when there is another login than ``before``.

    A password is often changed in the cluster first, and in the secret a moment later.
    """
    deadline = time.monotonic() + seconds
    while tried(logins) == before and (left := deadline - time.monotonic()) > 0:
        if wake.wait(min(left, _LOOK_SECONDS)):
            return
