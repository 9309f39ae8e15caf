"""One client connection through the protocol proxy: whole frames, each treated as the rules say."""

import asyncio
import contextlib
import struct
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Protocol

from replicator.testing.faults.network import abort
from replicator.testing.faults.protocol_frames import (
    Frame,
    error_response,
    learn_topics,
    read_request,
    with_addresses,
    with_error,
    with_versions,
    without_brokers,
)
from replicator.testing.faults.protocol_rules import (
    Answer,
    Api,
    Delay,
    DropRequest,
    DropResponse,
    Duplicate,
    HideApis,
    Hold,
    LimitRate,
    Match,
    NameNoBrokers,
    Request,
    Rule,
)

_LENGTH = struct.Struct(">i")
_CHUNK_BYTES = 1 << 18
_LATE_SECONDS = 5.0
"""How long a held request may take to be answered once it is delivered."""


class FrameStream:
    """One side of a connection, as frames without their length."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._buffer = bytearray()

    async def receive(self) -> bytes | None:
        """The next frame; None at the end. Cancelled, it loses no byte."""
        while True:
            if len(self._buffer) >= _LENGTH.size:
                end = _LENGTH.size + _LENGTH.unpack_from(self._buffer)[0]
                if len(self._buffer) >= end:
                    frame = bytes(self._buffer[_LENGTH.size : end])
                    del self._buffer[:end]
                    return frame
            try:
                data = await self._reader.read(_CHUNK_BYTES)
            except OSError:
                return None
            if not data:
                return None
            self._buffer += data

    async def send(self, frame: bytes) -> None:
        """Sends a frame; a connection that has ended shows when it is read."""
        self._writer.write(_LENGTH.pack(len(frame)) + frame)
        with contextlib.suppress(OSError):
            await self._writer.drain()

    def close(self) -> None:
        """Ends the connection as a peer does that wants no more."""
        self._writer.close()

    def abort(self) -> None:
        """Ends the connection with a reset."""
        abort(self._writer)


class Held:
    """A request that stays in the proxy, and the connection to the broker on which it is delivered."""

    def __init__(self, frame: Frame, upstream: FrameStream, *, until: Match | None) -> None:
        self.frame = frame
        self.until = until
        self._upstream = upstream

    async def deliver(self) -> None:
        """Sends the request and waits until the broker has answered it."""
        await self._upstream.send(self.frame.data)
        await self.skip_answer()
        self.close()

    async def skip_answer(self) -> None:
        """Reads until the broker has answered the request; nobody gets the answer."""
        async with asyncio.timeout(_LATE_SECONDS):
            while (response := await self._upstream.receive()) is not None:
                if _LENGTH.unpack_from(response)[0] == self.frame.correlation_id:
                    return

    def close(self) -> None:
        """Gives the connection to the broker back."""
        self._upstream.abort()


class Host(Protocol):
    """The proxy, as its connections see it."""

    topic_names: dict[Any, str]
    """By topic id; learned from responses."""

    def on_request(self, request: Request) -> tuple[Rule, ...]:
        """Counts a request and says what happens to it."""
        ...

    async def on_answer(self, request: Request) -> None:
        """A request was answered by the broker; delivers first what waited for that."""
        ...

    async def on_held(self, held: Held) -> None:
        """Keeps a request."""
        ...

    def address_for(self, address: tuple[str, int]) -> tuple[str, int]:
        """Where clients reach a broker through the proxy."""
        ...


@dataclass(slots=True)
class _Slot:
    """The place of one response in the order of requests."""

    frame: Frame
    rules: tuple[Rule, ...]
    response: "asyncio.Future[bytes]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    forwarded: bool = True


class ProtocolConnection:
    """One client and its broker."""

    def __init__(self, host: Host, client: FrameStream, upstream: FrameStream) -> None:
        self._host = host
        self._client = client
        self._upstream = upstream
        self._upstream_is_ours = True
        self._reading: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending: deque[_Slot] = deque()
        self._slots: asyncio.Queue[_Slot | None] = asyncio.Queue()
        self._released = asyncio.Event()
        self.used_at = asyncio.get_running_loop().time()

    async def run(self) -> None:
        """Passes frames both ways until a side has ended or a rule ends the connection."""
        self._reading = asyncio.ensure_future(self._responses())
        both = [asyncio.ensure_future(work) for work in (self._requests(), self._answers())]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            tasks = [self._reading, *both]
            for task in tasks:
                task.cancel()
            try:
                await asyncio.gather(*tasks, return_exceptions=True)
            finally:  # the proxy may be stopped in this moment
                self.abort()

    def abort(self) -> None:
        """Resets both sides, less a broker's side that a held request has taken."""
        self._client.abort()
        if self._upstream_is_ours:
            self._upstream.abort()

    def end(self) -> None:
        """Closes the client's side as a broker does with an idle connection."""
        self._client.close()

    def release(self) -> None:
        """Lets a request go on that stands still in this connection."""
        self._released.set()

    async def _requests(self) -> None:
        while (data := await self._client.receive()) is not None:
            self.used_at = asyncio.get_running_loop().time()
            frame = read_request(data, self._host.topic_names)
            if not await self._treat(frame, self._host.on_request(frame.request)):
                return

    async def _treat(self, frame: Frame, rules: tuple[Rule, ...]) -> bool:
        """Does to a request what the rules say; False ends the connection."""
        for rule in rules:
            match rule.verb:
                case Delay(request_seconds=seconds):
                    await asyncio.sleep(seconds)
                case LimitRate(rate):
                    await asyncio.sleep(len(frame.data) / rate)
                case DropRequest(reset):
                    return not reset
                case Answer(error, forwarded=False):
                    slot = _Slot(frame, rules, forwarded=False)
                    slot.response.set_result(error_response(frame, error))
                    self._slots.put_nowait(slot)
                    return True
                case Hold(until, reset=True):
                    await self._take_upstream()
                    await self._host.on_held(Held(frame, self._upstream, until=until))
                    return False
                case Hold(until):
                    self._released.clear()
                    await self._host.on_held(_Standing(frame, self, until=until))
                    await self._released.wait()
                case Duplicate(until):
                    await self._keep_duplicate(frame, until)
                    return False
                case _:
                    continue
        await self._forward(frame, rules)
        return True

    async def _forward(self, frame: Frame, rules: tuple[Rule, ...]) -> None:
        if frame.answered:
            slot = _Slot(frame, rules)
            self._pending.append(slot)
            self._slots.put_nowait(slot)
        await self._upstream.send(frame.data)

    async def _keep_duplicate(self, frame: Frame, until: Match | None) -> None:
        again = Match(frame.request.api, client_id=frame.request.client_id)
        await self._take_upstream()
        held = Held(frame, self._upstream, until=until or again)
        await self._upstream.send(frame.data)
        await held.skip_answer()
        await self._host.on_held(held)

    async def _take_upstream(self) -> None:
        """From now on what holds a request reads from the broker, and this connection does not."""
        self._upstream_is_ours = False
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    async def _responses(self) -> None:
        while (data := await self._upstream.receive()) is not None:
            self._pending.popleft().response.set_result(data)
        self._slots.put_nowait(None)

    async def _answers(self) -> None:
        while (slot := await self._slots.get()) is not None:
            response: bytes | None = await slot.response
            self.used_at = asyncio.get_running_loop().time()
            if slot.forwarded and response is not None:
                await self._host.on_answer(slot.frame.request)
                self._host.topic_names.update(learn_topics(slot.frame, response))
                response = with_addresses(slot.frame, response, self._host.address_for)
                if slot.frame.request.api == Api.API_VERSIONS:
                    response = with_versions(slot.frame, response, HideApis())
                response = await self._changed(slot, response)
            if response is not None:
                await self._client.send(response)

    async def _changed(self, slot: _Slot, response: bytes) -> bytes | None:
        for rule in slot.rules:
            match rule.verb:
                case Delay(response_seconds=seconds):
                    await asyncio.sleep(seconds)
                case LimitRate(rate):
                    await asyncio.sleep(len(response) / rate)
                case HideApis() as hidden:
                    response = with_versions(slot.frame, response, hidden)
                case NameNoBrokers():
                    response = without_brokers(slot.frame, response)
                case Answer(error, forwarded=True):
                    response = with_error(slot.frame, response, error, rule.match.topic)
                case DropResponse(reset):
                    if reset:
                        self.abort()
                    return None
                case _:
                    continue
        return response


class _Standing(Held):
    """A request that stands still in its own connection."""

    def __init__(
        self, frame: Frame, connection: ProtocolConnection, *, until: Match | None
    ) -> None:
        self.frame = frame
        self.until = until
        self._connection = connection

    async def deliver(self) -> None:
        self._connection.release()

    def close(self) -> None:
        self._connection.abort()
