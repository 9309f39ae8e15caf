"""A broker that has not heard yet that it leads a partition, when the first write for it arrives.

Brokers show a new partition in their metadata a moment before they accept writes for it. A client
with several requests under way then has the first one refused and the next one taken: brokers up to
Kafka 4.3 let the first write they see of an unknown producer begin anywhere (KAFKA-15591), and
librdkafka takes the second answer as one for both. This makes that moment happen.
"""

import contextlib
import socket
import struct
import threading
from typing import NamedTuple, Self

_PRODUCE = 0
_FLEXIBLE = 9
_NOT_LEADER_OR_FOLLOWER = 6
_WAIT_SECONDS = 5.0


class _Place(NamedTuple):
    topic: str
    partition: int


class LateLeader:
    """Stands at ``port`` before the broker at ``target_port``.

    The first write of every partition of ``topics`` is refused as soon as a second one for the same
    partition is on its way to the broker (or none comes within five seconds).
    """

    def __init__(self, *, port: int, target_port: int, topics: set[str]) -> None:
        self._topics = topics
        self._target_port = target_port
        self._second: dict[_Place, threading.Event] = {}
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", port))
        self.overtaken: set[tuple[str, int]] = set()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # A close alone does not wake a thread that waits for the socket.
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(("127.0.0.1", self._target_port))
                self._sockets += (client, broker)
                answering = threading.Lock()
                for pump in (self._requests, self._answers):
                    threading.Thread(
                        target=pump, args=(client, broker, answering), daemon=True
                    ).start()

    def _requests(
        self, client: socket.socket, broker: socket.socket, answering: threading.Lock
    ) -> None:
        with contextlib.suppress(OSError):
            while (frame := _frame(client)) is not None:
                place = _written(frame)
                if place is None or place.topic not in self._topics:
                    broker.sendall(frame)
                    continue
                with self._lock:
                    first = place not in self._second
                    second = self._second.setdefault(place, threading.Event())
                if not first:
                    broker.sendall(frame)
                    second.set()
                    continue
                threading.Thread(
                    target=self._refuse,
                    args=(frame, place, second, client, answering),
                    daemon=True,
                ).start()
        with contextlib.suppress(OSError):
            broker.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _answers(client: socket.socket, broker: socket.socket, answering: threading.Lock) -> None:
        with contextlib.suppress(OSError):
            while (frame := _frame(broker)) is not None:
                with answering:
                    client.sendall(frame)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def _refuse(
        self,
        frame: bytes,
        place: _Place,
        second: threading.Event,
        client: socket.socket,
        answering: threading.Lock,
    ) -> None:
        if second.wait(_WAIT_SECONDS):
            self.overtaken.add(tuple(place))
        with contextlib.suppress(OSError), answering:
            client.sendall(_refusal(frame, place))


def _frame(source: socket.socket) -> bytes | None:
    """One length-prefixed message, with its prefix; None at the end."""
    head = _exactly(source, 4)
    if head is None:
        return None
    body = _exactly(source, int.from_bytes(head))
    return None if body is None else head + body


def _exactly(source: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        part = source.recv(size - len(data))
        if not part:
            return None
        data += part
    return bytes(data)


def _written(frame: bytes) -> _Place | None:
    """The first partition that a produce request writes to; None for other requests."""
    key, version, _, client_id = struct.unpack_from(">hhih", frame, 4)
    if key != _PRODUCE:
        return None
    at = 14 + max(0, client_id)
    if version < _FLEXIBLE:
        (transactional_id,) = struct.unpack_from(">h", frame, at)
        at += 2 + max(0, transactional_id) + 2 + 4 + 4  # acks, time-out, count of topics
        (name,) = struct.unpack_from(">h", frame, at)
        at += 2
        after = at + name + 4  # count of partitions
    else:
        at += 1  # no tagged fields in the header
        at += max(1, frame[at]) + 2 + 4 + 1  # short ids and few topics: lengths of one byte
        name = frame[at] - 1
        at += 1
        after = at + name + 1
    (partition,) = struct.unpack_from(">i", frame, after)
    return _Place(frame[at : at + name].decode(), partition)


def _refusal(frame: bytes, place: _Place) -> bytes:
    _, version, correlation = struct.unpack_from(">hhi", frame, 4)
    name = place.topic.encode()
    part = struct.pack(">ihqqq", place.partition, _NOT_LEADER_OR_FOLLOWER, -1, -1, -1)
    if version < _FLEXIBLE:
        details = struct.pack(">ih", 0, -1) if version >= 8 else b""
        body = struct.pack(">iih", correlation, 1, len(name)) + name
        body += struct.pack(">i", 1) + part + details + struct.pack(">i", 0)
    else:
        body = struct.pack(">iBBB", correlation, 0, 2, len(name) + 1) + name
        body += b"\x02" + part + b"\x01\x00\x00" + b"\x00" + struct.pack(">i", 0) + b"\x00"
    return struct.pack(">i", len(body)) + body
