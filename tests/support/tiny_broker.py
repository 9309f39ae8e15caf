"""Brokers of a few requests on loopback, for what no real broker does on demand."""

import socketserver
import struct
import threading
import time
from collections.abc import Callable

API_VERSIONS, FIND_COORDINATOR, HANDSHAKE, AUTHENTICATE = 18, 10, 17, 36
OFFSET_COMMIT = 8
SASL_AUTHENTICATION_FAILED = 58


class LoopbackBroker:
    """Speaks the frames of the protocol; what is answered, and how long, a subclass decides.

    Attributes:
        versions: key, lowest and highest version of each request it knows.
        address: where it listens.
    """

    versions: tuple[tuple[int, int, int], ...] = ()

    def __init__(self) -> None:
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.address: tuple[str, int] = ("127.0.0.1", self._server.server_address[1])

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def connected(self) -> Callable[[int, int], bool]:
        """Whether a connection's next request, by key and version, is answered; else it is cut."""
        return lambda _key, _version: True

    def answer(self, key: int) -> bytes:
        """The body of a response."""
        assert key == API_VERSIONS, key
        parts = b"".join(struct.pack(">hhh", *each) for each in self.versions)
        return struct.pack(">hi", 0, len(self.versions)) + parts

    def heard(self, request: bytes) -> None:
        """A request that is answered next, with its header and without its length."""

    def _handler(self) -> type[socketserver.StreamRequestHandler]:
        broker = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                serves = broker.connected()
                while head := self.rfile.read(4):
                    frame = self.rfile.read(int.from_bytes(head, "big"))
                    key, version, correlation = struct.unpack(">hhi", frame[:8])
                    if not serves(key, version):
                        return
                    broker.heard(frame)
                    answer = struct.pack(">i", correlation) + broker.answer(key)
                    self.wfile.write(struct.pack(">i", len(answer)) + answer)

        return Handler


class TinyBroker(LoopbackBroker):
    """Lets everybody in for sessions of a set length, or nobody; ``held`` answers wait until let go.

    Cuts a connection that asks anything after its session.
    """

    versions = ((API_VERSIONS, 0, 0), (HANDSHAKE, 0, 1), (AUTHENTICATE, 0, 1))

    def __init__(self, *, session_seconds: float) -> None:
        self.session_seconds = session_seconds
        self.logins: list[int] = []
        self.refuses = False
        self.cut = 0
        self.free = threading.Event()
        self.free.set()
        super().__init__()

    def stop(self) -> None:
        self.free.set()
        super().stop()

    def connected(self) -> Callable[[int, int], bool]:
        ends_at = float("inf")

        def serves(key: int, version: int) -> bool:
            nonlocal ends_at
            if key == AUTHENTICATE:
                self.logins.append(version)
                ends_at = time.monotonic() + self.session_seconds
            elif key != HANDSHAKE and time.monotonic() >= ends_at:
                self.cut += 1
                return False
            return True

        return serves

    def answer(self, key: int) -> bytes:
        if key == API_VERSIONS:
            return super().answer(key)
        if key == HANDSHAKE:
            return struct.pack(">hih5s", 0, 1, 5, b"PLAIN")
        if key == AUTHENTICATE and self.refuses:
            return struct.pack(">hhiq", SASL_AUTHENTICATION_FAILED, -1, 0, 0)
        if key == AUTHENTICATE:
            return struct.pack(">hhiq", 0, -1, 0, round(self.session_seconds * 1000))
        self.free.wait(20)
        return b"done"
