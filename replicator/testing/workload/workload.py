"""Everything a run needs to make traffic and to look at what became of it."""

from replicator.testing.workload.group_reader import GroupReader
from replicator.testing.workload.recorder import Recorder
from replicator.testing.workload.records import RecordStyle
from replicator.testing.workload.scan import scan
from replicator.testing.workload.writer import Writer

__all__ = ["GroupReader", "RecordStyle", "Recorder", "Writer", "scan"]
