"""Room: testing. Local clusters, faults, workloads, histories and their checker; shipped to users.

Needs the ``testing`` extra. Nothing of the product imports this room except ``demo`` and ``drill``.
"""

from replicator.testing.cluster import LocalCluster, start_all
from replicator.testing.fault_proxy import FaultProxy
from replicator.testing.manual_clock import ManualClock
from replicator.testing.security import SecuritySetup
from replicator.testing.waiting import NotInTimeError, wait_until

__all__ = [
    "FaultProxy",
    "LocalCluster",
    "ManualClock",
    "NotInTimeError",
    "SecuritySetup",
    "start_all",
    "wait_until",
]
