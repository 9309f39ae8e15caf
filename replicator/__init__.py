"""Replicator: multi-cluster Kafka replication with exactly-once copies and measured failover."""

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    """Looks the version up when somebody asks: the look-up alone costs a tenth of a start-up."""
    if name != "__version__":
        raise AttributeError(f"module 'replicator' has no attribute '{name}'")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("replicator")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "0+unknown"
