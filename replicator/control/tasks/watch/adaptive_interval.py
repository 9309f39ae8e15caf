"""How often to look at something that may be at rest. Pure."""


class AdaptiveInterval:
    """Looks that come ever less often while nothing moves, and at the first pace once something does.

    The pause doubles with every quiet look, up to ``slowest_seconds``. A caller asks ``due`` at its own
    pace, so a look that is due within half of that pace counts as due.
    """

    def __init__(self, *, pace_seconds: float, slowest_seconds: float) -> None:
        self._pace_seconds = pace_seconds
        self._slowest_seconds = slowest_seconds
        self._pause_seconds = pace_seconds
        self._look_at = float("-inf")

    def due(self, now_seconds: float) -> bool:
        """Whether it is time to look; ``now_seconds`` is of a monotonic clock."""
        return now_seconds >= self._look_at

    def looked(self, now_seconds: float, *, quiet: bool) -> None:
        """Notes a look that was begun at ``now_seconds``, and whether nothing had moved."""
        self._pause_seconds = (
            min(2 * self._pause_seconds, self._slowest_seconds) if quiet else self._pace_seconds
        )
        self._look_at = now_seconds + self._pause_seconds - self._pace_seconds / 2
