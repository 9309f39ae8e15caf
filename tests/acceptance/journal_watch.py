"""Role changes run by the command line as a process of its own, and ended at an instant of their journal."""

import json
import sys
from collections.abc import Callable
from typing import Self

from acceptance_scene import Scene
from confluent_kafka import Consumer, KafkaError, TopicPartition

from replicator.testing import LocalCluster, wait_until
from replicator.testing.kit.child_processes import ChildProcess, start_child

COMMAND_SECONDS = 120.0
Step = tuple[str, str]
"""Name of a step and what the journal says of it: ``intent`` or ``done``."""


class Command:
    """One run of ``replicator`` by somebody."""

    def __init__(self, scene: Scene, who: str, *words: str) -> None:
        """``words`` are the command line, without the topology."""
        number = len(list(scene.directory.glob("command-*.log")))
        self._log = scene.directory / f"command-{number}-{who}.log"
        self._child: ChildProcess = start_child(
            [sys.executable, "-m", "replicator", *words, "-f", str(scene.topology())],
            output=self._log,
            environment={"LOGNAME": who, "COLUMNS": "200"},
        )

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._child.exit_code() is None

    def kill(self) -> None:
        """SIGKILL; returns when it is gone."""
        self._child.kill()

    def ended(self) -> tuple[int | None, str]:
        """Its exit code and all that it said, once it has ended."""
        self._child.wait(COMMAND_SECONDS)
        return self._child.exit_code(), self.said()

    def said(self) -> str:
        """All that it said so far."""
        return self._log.read_text(errors="replace")


class JournalWatch:
    """Follows the steps that a cluster's control topic tells of, from now on; closes with ``with``."""

    def __init__(self, cluster: LocalCluster, topology: str) -> None:
        place = TopicPartition(f"__replicator.{topology}.control", 0)
        self._consumer = Consumer(
            {
                **cluster.admin_settings(),
                "group.id": "journal-watch",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                # Also what a transaction that is under way has written: the earliest moment there is.
                "isolation.level": "read_uncommitted",
                "fetch.wait.max.ms": 10,
            }
        )
        self._place, self._read_to = place, -1
        place.offset = self._end()
        self._consumer.assign([place])
        self.steps: list[Step] = []
        self.states: list[str] = []
        """Of transitions as a whole: ``open``, and how they ended."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def look(self) -> None:
        """Takes down what was written since."""
        for message in self._consumer.consume(100, 0.01):
            if message.error() is not None:
                if message.error().code() == KafkaError._PARTITION_EOF:
                    self._read_to = message.offset()
                continue
            if not message.value():
                continue
            key = json.loads(message.key())
            state = json.loads(message.value()).get("state")
            if key["kind"] == "step":
                self.steps.append((key["step"], state))
            elif key["kind"] == "transition":
                self.states.append(state)

    def look_at_all(self) -> None:
        """Takes down all that is written by now."""
        end = self._end()
        wait_until(
            lambda: self.look() or self._read_to >= end,
            timeout_seconds=COMMAND_SECONDS,
            describe="the end of the journal",
            interval_seconds=0.0,
        )

    def _end(self) -> int:
        return self._consumer.get_watermark_offsets(self._place, timeout=20.0)[1]

    def until(self, step: Step, *, or_else: Callable[[], bool]) -> bool:
        """Waits for an entry of the journal; False when ``or_else`` came true first."""

        def there() -> bool:
            self.look()
            return step in self.steps or or_else()

        wait_until(
            there,
            timeout_seconds=COMMAND_SECONDS,
            describe=lambda: f"{step} in the journal, which has {self.steps}",
            interval_seconds=0.0,
        )
        return step in self.steps
