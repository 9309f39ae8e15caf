"""The controller's producer, shared by its rounds and its periodic tasks: one write at a time."""

import asyncio
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from replicator.blocking import finished
from replicator.control.records.base import Storable
from replicator.control.store.controller_writer import ControllerWriter, Placed
from replicator.errors import UnreachableError
from replicator.identifiers import control_topic
from replicator.topology.plan import PairPlan

P = ParamSpec("P")
T = TypeVar("T")


class SingleWriter:
    """For one event loop. Opening the producer fences every earlier controller."""

    def __init__(self, pair: PairPlan, topology: str, *, client_id: str) -> None:
        self._pair = pair
        self._topology = topology
        self._client_id = client_id
        self._control_topic = control_topic(topology)
        self._writer: ControllerWriter | None = None
        self._writing = asyncio.Lock()

    async def opened(self) -> ControllerWriter:
        """The producer, opened anew where the last one is spent; called by rounds alone.

        Raises:
            ClusterError: the target does not answer.
        """
        if self._writer is not None and self._writer.spent:
            self.close()
        if self._writer is None:
            self._writer = await finished(
                ControllerWriter, self._pair, self._topology, client_id=self._client_id
            )
        return self._writer

    def held(self) -> ControllerWriter:
        """The producer as a round opened it.

        Raises:
            UnreachableError: no round has opened it yet, or it is spent.
        """
        if self._writer is None or self._writer.spent:
            raise UnreachableError(
                "the controller has not begun its round yet", subject=self._pair.id
            )
        return self._writer

    async def alone(self, call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Runs a write to its end while no other one runs."""
        async with self._writing:
            return await finished(call, *arguments, **named)

    async def store(self, writer: ControllerWriter, records: Sequence[Storable]) -> None:
        """Writes records into the control topic.

        Raises:
            ClusterError: nothing was written, or it is unknown.
            FencedError: another controller took over.
        """
        await self.alone(self.write, writer, [record.encode() for record in records])

    def write(self, writer: ControllerWriter, log: Sequence[tuple[bytes, bytes | None]]) -> None:
        """The same, of keys and values, in this thread."""
        writer.write([Placed(self._control_topic, 0, key, value) for key, value in log])

    def close(self) -> None:
        """Closes the producer; the next one fences it."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
