"""A broker of four requests on loopback: it lets everybody in for sessions of a set length, or nobody."""

import socketserver
import struct
import threading
import time

API_VERSIONS, HANDSHAKE, AUTHENTICATE = 18, 17, 36
SASL_AUTHENTICATION_FAILED = 58
_VERSIONS = ((API_VERSIONS, 0, 0), (HANDSHAKE, 0, 1), (AUTHENTICATE, 0, 1))


class TinyBroker:
    """Cuts a connection that asks anything after its session; ``held`` answers wait until let go."""

    def __init__(self, *, session_seconds: float) -> None:
        self.session_seconds = session_seconds
        self.logins: list[int] = []
        self.refuses = False
        self.cut = 0
        self.free = threading.Event()
        self.free.set()
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.address: tuple[str, int] = ("127.0.0.1", self._server.server_address[1])

    def stop(self) -> None:
        self.free.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[socketserver.StreamRequestHandler]:
        broker = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                ends_at = float("inf")
                while head := self.rfile.read(4):
                    frame = self.rfile.read(int.from_bytes(head, "big"))
                    key, version, correlation = struct.unpack(">hhi", frame[:8])
                    if key == AUTHENTICATE:
                        broker.logins.append(version)
                        ends_at = time.monotonic() + broker.session_seconds
                    elif key != HANDSHAKE and time.monotonic() >= ends_at:
                        broker.cut += 1
                        return
                    answer = struct.pack(">i", correlation) + broker.answer(key)
                    self.wfile.write(struct.pack(">i", len(answer)) + answer)

        return Handler

    def answer(self, key: int) -> bytes:
        """The body of a response."""
        if key == API_VERSIONS:
            parts = b"".join(struct.pack(">hhh", *each) for each in _VERSIONS)
            return struct.pack(">hi", 0, len(_VERSIONS)) + parts
        if key == HANDSHAKE:
            return struct.pack(">hih5s", 0, 1, 5, b"PLAIN")
        if key == AUTHENTICATE and self.refuses:
            return struct.pack(">hhiq", SASL_AUTHENTICATION_FAILED, -1, 0, 0)
        if key == AUTHENTICATE:
            return struct.pack(">hhiq", 0, -1, 0, round(self.session_seconds * 1000))
        self.free.wait(20)
        return b"done"
