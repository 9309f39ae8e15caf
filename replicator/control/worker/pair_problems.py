"""What keeps a pair from its work at present, by what it is about; the newest counts."""

from collections.abc import Sequence

from replicator.errors import ReplicatorError
from replicator.kafka.clients.client import KafkaError
from replicator.kafka.clients.errors import map_kafka_error
from replicator.problem import Problem

_MEMBERSHIP, _UNCONFIRMED = "membership", "unconfirmed"


class PairProblems:
    """Written by the threads of a pair, read by anybody: each call is one step on one dictionary."""

    def __init__(self, target: str, *, group: str) -> None:
        """``target`` is the alias of the cluster that has the workers' ``group``."""
        self._group = group
        self._target = f"cluster:{target}"
        self._found: dict[str, Problem] = {}

    def all(self) -> tuple[Problem, ...]:
        """Everything that is wrong now."""
        return tuple(self._found.values())

    def note(self, error: ReplicatorError) -> str:
        """Keeps what is wrong; returns the name under which it can be cleared."""
        subject = error.subject or "flow"
        self._found[subject] = Problem(error.code, subject, error.message, error.remedy)
        return subject

    def note_membership(self, error: KafkaError | None) -> None:
        """Keeps what the worker group's client says of its connection; None clears it."""
        if error is None:
            self.clear(_MEMBERSHIP)
            return
        mapped = map_kafka_error(
            error, subject=self._target, doing=f"belong to the worker group {self._group}"
        )
        problem = Problem(mapped.code, self._target, mapped.message, mapped.remedy)
        self._found[_MEMBERSHIP] = problem

    def note_unconfirmed(self, lanes: Sequence[int], why: ReplicatorError) -> str:
        """Keeps that lanes wait for the group to say whose they are; returns what is told."""
        subject = f"lane {lanes[0]}" if len(lanes) == 1 else "flow"
        which = f"{subject} waits" if len(lanes) == 1 else f"{len(lanes)} lanes wait"
        told = (
            f"{which}: another owner had taken over, and the worker group {self._group} does not confirm "
            f"that this worker has the lane: {why.message}"
        )
        self._found[_UNCONFIRMED] = Problem(why.code, subject, told, why.remedy)
        return told

    def note_confirmed(self) -> None:
        """No lane waits for that."""
        self.clear(_UNCONFIRMED)

    def clear(self, name: str) -> None:
        """Drops what was noted under this name."""
        self._found.pop(name, None)

    def clear_all(self) -> None:
        """Drops everything that was noted."""
        self._found.clear()
