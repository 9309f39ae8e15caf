"""Replicator: multi-cluster Kafka replication with exactly-once copies and measured failover."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("replicator")
except PackageNotFoundError:  # run from a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
