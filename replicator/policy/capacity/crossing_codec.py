"""How records are compressed on their way over a long line, unless the target takes none of it. Pure."""


class CrossingCodec:
    """Of one lane; outlives sessions."""

    def __init__(self) -> None:
        self._refused = False

    def of(self, wanted: str) -> str:
        """What is used where the line asks for this one."""
        return "none" if self._refused else wanted

    def refused(self) -> None:
        """The target takes no batches that are compressed so: some vendors take gzip alone, or nothing."""
        self._refused = True
