"""The other end of a reader's connection: what it is asked, and answers as a test wants them."""

import contextlib
import selectors
import socket
import struct

from replicator.batches.network.buffers import BufferPool
from replicator.batches.network.channel import Channel


class Far:
    """The broker's end of the reader's connection: requests as bytes, and empty answers of a fetch session."""

    def __init__(self, made):
        self.reader = made
        self.connect()

    def connect(self) -> None:
        """The reader has a new connection, in place of one that it lost."""
        near, self.socket = socket.socketpair()
        self.socket.setblocking(False)
        brokers = self.reader.brokers
        brokers.versions[7] = {1: (0, 12)}
        brokers._channels[7] = Channel(near, pool=BufferPool(), where="here")
        brokers._selector.register(near, selectors.EVENT_READ, (brokers, 7))

    def asked(self):
        """The request that came, empty when none did; and its correlation id."""
        data = b""
        with contextlib.suppress(BlockingIOError):
            data = self.socket.recv(1 << 16)
        return data

    @staticmethod
    def part(topic, records, *, end):
        """What an answer says of partition 0 of a topic, which ends there."""
        part = struct.pack(">ihqqq", 0, 0, end, end, 0) + b"\x01" + struct.pack(">i", -1)
        part += bytes([len(records) + 1]) + records + b"\x00"
        return b"\x02" + bytes([len(topic) + 1]) + topic.encode() + b"\x02" + part + b"\x00"

    def answer(self, request, *, filler=0, topics=b"\x01", served=True):
        """Answers a request; the reader's loop has it at once unless it is not ``served``."""
        correlation = request[8:12]
        body = (
            correlation + b"\x00" + struct.pack(">ihi", 0, 0, 77) + topics + b"\x00" + bytes(filler)
        )
        data = struct.pack(">i", len(body)) + body
        if served:
            self.send(data)
        else:
            self.socket.sendall(data)

    def send(self, data):
        """Sends a part of an answer; the reader's loop has it at once."""
        self.socket.sendall(data)
        key, events = self.reader.brokers._selector.select(5)[0]
        self.reader.brokers.serve(key.data[1], events, 0.0)
