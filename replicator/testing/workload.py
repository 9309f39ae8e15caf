"""Everything a run needs to make traffic and to look at what became of it."""

from replicator.testing.group_reader import GroupReader
from replicator.testing.recorder import Recorder
from replicator.testing.records import RecordStyle
from replicator.testing.scan import scan
from replicator.testing.writer import Writer

__all__ = ["GroupReader", "RecordStyle", "Recorder", "Writer", "scan"]
