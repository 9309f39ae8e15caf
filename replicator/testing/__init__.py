"""Room: testing. Local clusters, faults, workloads, histories and their checker; shipped to users.

Needs the ``testing`` extra. Nothing of the product imports this room except ``demo`` and ``drill``.
"""

from replicator.testing.checker.anomalies import Anomaly, Finding, Report
from replicator.testing.checker.check import check
from replicator.testing.cluster.local_cluster import LocalCluster, start_all
from replicator.testing.cluster.security import IdentityProvider, SecuritySetup
from replicator.testing.faults.fault_proxy import FaultProxy
from replicator.testing.faults.protocol_proxy import ProtocolProxy
from replicator.testing.kit.endpoints import Endpoint, RemoteCluster
from replicator.testing.kit.manual_clock import ManualClock
from replicator.testing.kit.waiting import NotInTimeError, wait_until
from replicator.testing.wan.line_rules import LineQuality
from replicator.testing.wan.wan_line import WanLine
from replicator.testing.workload.group_reader import GroupReader
from replicator.testing.workload.poller import Poller
from replicator.testing.workload.positions import commit_positions
from replicator.testing.workload.recorder import Recorder
from replicator.testing.workload.records import RecordStyle
from replicator.testing.workload.scan import scan
from replicator.testing.workload.writer import Writer

__all__ = [
    "Anomaly",
    "Endpoint",
    "FaultProxy",
    "Finding",
    "GroupReader",
    "IdentityProvider",
    "LineQuality",
    "LocalCluster",
    "ManualClock",
    "NotInTimeError",
    "Poller",
    "ProtocolProxy",
    "RecordStyle",
    "Recorder",
    "RemoteCluster",
    "Report",
    "SecuritySetup",
    "WanLine",
    "Writer",
    "check",
    "commit_positions",
    "scan",
    "start_all",
    "wait_until",
]
