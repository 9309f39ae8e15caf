"""A coordinator that hangs up while it is asked what it knows leaves no open socket behind."""

import contextlib
import gc
import socketserver
import struct
import threading
import warnings

from replicator.batches.copy.transactions import Transactions
from replicator.errors import UnreachableError
from replicator.topology.plan import ClusterPlan

API_VERSIONS, FIND_COORDINATOR = 18, 10


class HangsUp:
    """Says that it is the coordinator, and ends a connection at the second request for versions."""

    def __init__(self) -> None:
        self.ended = 0
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[socketserver.StreamRequestHandler]:
        broker = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                asked = 0
                while head := self.rfile.read(4):
                    frame = self.rfile.read(int.from_bytes(head, "big"))
                    key, _, correlation = struct.unpack(">hhi", frame[:8])
                    asked += key == API_VERSIONS
                    if asked > 1:
                        broker.ended += 1
                        return
                    answer = struct.pack(">i", correlation) + broker.answer(key)
                    self.wfile.write(struct.pack(">i", len(answer)) + answer)

        return Handler

    def answer(self, key: int) -> bytes:
        if key == API_VERSIONS:
            known = ((API_VERSIONS, 0, 0), (FIND_COORDINATOR, 1, 1))
            parts = b"".join(struct.pack(">hhh", *each) for each in known)
            return struct.pack(">hi", 0, len(known)) + parts
        return struct.pack(">ihhih9si", 0, 0, -1, 1, 9, b"127.0.0.1", self.port)


def test_a_coordinator_that_hangs_up_leaves_no_socket_open():
    broker = HangsUp()
    west = ClusterPlan("west", (f"127.0.0.1:{broker.port}",))
    transactions = Transactions(west, client_id="c", transactional_id="id", timeout_seconds=60.0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with contextlib.suppress(UnreachableError):
            transactions.take_over(5)
        transactions.close()
        gc.collect()
    broker.stop()
    assert broker.ended == 1
    assert [str(each.message) for each in told if each.category is ResourceWarning] == []
