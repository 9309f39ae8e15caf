"""Room: testing. Local clusters, faults, workloads, histories and their checker; shipped to users.

Needs the ``testing`` extra. Nothing of the product imports this room except ``demo`` and ``drill``.
"""

from replicator.testing.anomalies import Anomaly, Finding, Report
from replicator.testing.checker import check
from replicator.testing.cluster import LocalCluster, start_all
from replicator.testing.endpoints import Endpoint, RemoteCluster
from replicator.testing.fault_proxy import FaultProxy
from replicator.testing.group_reader import GroupReader
from replicator.testing.manual_clock import ManualClock
from replicator.testing.positions import commit_positions
from replicator.testing.recorder import Recorder
from replicator.testing.records import RecordStyle
from replicator.testing.scan import scan
from replicator.testing.security import SecuritySetup
from replicator.testing.waiting import NotInTimeError, wait_until
from replicator.testing.writer import Writer

__all__ = [
    "Anomaly",
    "Endpoint",
    "FaultProxy",
    "Finding",
    "GroupReader",
    "LocalCluster",
    "ManualClock",
    "NotInTimeError",
    "RecordStyle",
    "Recorder",
    "RemoteCluster",
    "Report",
    "SecuritySetup",
    "Writer",
    "check",
    "commit_positions",
    "scan",
    "start_all",
    "wait_until",
]
