"""A connection that a proxy has accepted is closed once, at whatever moment its work is cut off."""

import asyncio
import gc
import socket

import pytest

from replicator.testing.faults.network import serve

LIMIT = 1 << 16


async def echo(reader, writer):
    while data := await reader.read(LIMIT):
        writer.write(data)


async def answered(client):
    loop = asyncio.get_running_loop()
    client.setblocking(False)
    await loop.sock_sendall(client, b"?")
    return await asyncio.wait_for(loop.sock_recv(client, 1), 5)


@pytest.mark.parametrize("turns", range(8))
def test_work_that_is_cut_off_disturbs_no_later_connection(turns):
    """The number of a socket that is closed beneath its transport goes to the next connection."""

    async def run():
        cut, client = socket.socketpair()
        with client:
            task = serve(cut, echo, limit=LIMIT)
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            following, other = socket.socketpair()
            with other:
                later = serve(following, echo, limit=LIMIT)
                assert await answered(other) == b"?"
            await later
            client.setblocking(False)
            assert await asyncio.get_running_loop().sock_recv(client, 1) == b""
        await asyncio.sleep(0)

    asyncio.run(run())
    gc.collect()  # a transport that nobody has closed is an error of this test
