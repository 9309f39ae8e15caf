"""What is wrong between a lane and its two clusters, as its statistics state it.

Beside them stands the group that shows progress: a lane works without it, but nobody should have to guess
why a tool that watches lag shows nothing.
"""

from collections.abc import Callable

from replicator.errors import ReplicatorError
from replicator.kafka.clients import codes
from replicator.kafka.clients.client import KafkaError
from replicator.kafka.clients.errors import map_kafka_error


class ConnectionProblems:
    """A problem each of source and target; empty texts mean none."""

    def __init__(self, *, source: str, target: str) -> None:
        """``source`` and ``target`` are the clusters' aliases."""
        self._aliases = {"source": source, "target": target}
        self._texts = {"source": "", "target": ""}
        self._opening = {"source": "", "target": ""}
        self._progress = ""
        self._moved = (0, 0)

    @property
    def progress(self) -> str:
        """Why progress is not shown in the lane's group; the same form. Empty where the source itself has a problem."""
        return "" if self._texts["source"] else self._progress

    @property
    def source(self) -> str:
        """Code, message and remedy on a second line."""
        return self._texts["source"]

    @property
    def target(self) -> str:
        """Code, message and remedy on a second line."""
        return self._texts["target"]

    @property
    def opening(self) -> tuple[str, str]:
        """Why clients that the lane should go over to cannot be opened at source and target; the same form."""
        return self._opening["source"], self._opening["target"]

    def any(self) -> bool:
        """Whether one of the connections has a problem."""
        return any(self._texts.values())

    def on_failure(self, error: ReplicatorError) -> None:
        """Keeps an error that ended a session; one that names no cluster is the target's."""
        self._texts[self._side(error)] = _text(error)

    def not_opened(self, error: ReplicatorError) -> bool:
        """Keeps why other clients cannot be opened; returns whether that was not known."""
        text = f"{error.code} new clients cannot be opened, the lane goes on with those it has: {error.message}\n{error.remedy}"
        before, side = self.opening, self._side(error)
        self.opened()
        self._opening[side] = text
        return self.opening != before

    def opened(self) -> None:
        """Other clients are there, or no others are needed."""
        self._opening = {"source": "", "target": ""}

    def note(self, side: str, error: KafkaError | None) -> None:
        """Keeps an error a client reports of its connection to ``side``; None clears it."""
        if side not in self._texts:
            return
        if error is None:
            self._texts[side] = ""
            return
        if side == "source" and error.code() == codes.GROUP_REFUSED:
            return  # records come without the lane's group, and why it refuses is told by its coordinator
        subject = f"cluster:{self._aliases[side]}"
        self._texts[side] = _text(map_kafka_error(error, subject=subject, doing="connect"))

    def refuse_progress(self, error: ReplicatorError | None) -> None:
        """Keeps why the lane's group takes no positions; None clears it."""
        self._progress = "" if error is None else _text(error)

    def clear_answered(self, *, commits: int, read: int, answers: Callable[[str], bool]) -> None:
        """Clears a connection's problem once that cluster has answered again.

        Args:
            commits: the lane's commits so far; one more means that the target took it.
            read: records the lane read so far; one more came from the source.
            answers: asks a cluster that moved nothing; called only where there is a problem.
        """
        for side, now, before in (
            ("target", commits, self._moved[0]),
            ("source", read, self._moved[1]),
        ):
            if self._texts[side] and (now != before or answers(side)):
                self._texts[side] = ""
        self._moved = (commits, read)

    def _side(self, error: ReplicatorError) -> str:
        return "source" if error.subject == f"cluster:{self._aliases['source']}" else "target"


def _text(error: ReplicatorError) -> str:
    return f"{error.code} {error.message}\n{error.remedy}"
