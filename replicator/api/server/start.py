"""Runs the HTTP face inside a running event loop, or in a thread of its own.

FastAPI and uvicorn are imported when a server starts, not when this module is: a worker takes its
lanes first.
"""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from replicator.api.access.admission import Token
from replicator.api.routes.provider import StatusProvider
from replicator.api.server.address import BoundPort
from replicator.api.server.certificate import ServerCertificate
from replicator.observability.logging import get_logger

if TYPE_CHECKING:
    from replicator.api.server.serving import WorkerHttp

_LOG = get_logger("api")


class HttpServer:
    """One running server. Made by ``start_http``; ``stop`` may be called more than once."""

    def __init__(self, *, server: "WorkerHttp", task: "asyncio.Task[None]", url: str) -> None:
        self._server = server
        self._task = task
        self.url = url

    async def stop(self) -> None:
        """Answers what is being answered, for 2 s at most, then closes."""
        self._server.leave()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(self._task)


async def start_http(
    provider: StatusProvider,
    *,
    bound: BoundPort,
    token: Token | None,
    certificate: ServerCertificate | None = None,
) -> HttpServer:
    """Serves the provider at a bound port, in the running loop; returns once it answers.

    Who may read and change follows from the host and the token (see ``admission``). Leaves the
    process's signal handlers alone.
    """
    serving = await asyncio.to_thread(import_module, "replicator.api.server.serving")
    server: WorkerHttp = serving.build_server(
        provider, bound=bound, token=token, certificate=certificate
    )
    task = asyncio.create_task(server.serve(sockets=[bound.listener]), name="http")
    up = asyncio.create_task(server.up.wait(), name="http-up")
    await asyncio.wait({task, up}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        up.cancel()
        task.result()
        raise RuntimeError("the HTTP server ended before it was up")
    _LOG.info("console and API are up", url=bound.url, notice=bound.notice or None)
    return HttpServer(server=server, task=task, url=bound.url)


@contextmanager
def http_in_thread(
    provider: StatusProvider,
    *,
    bound: BoundPort,
    token: Token | None,
    certificate: ServerCertificate | None = None,
) -> Iterator[str]:
    """Serves from a thread with its own loop until the block ends; gives the URL."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="http", daemon=True)
    thread.start()
    try:
        starting = start_http(provider, bound=bound, token=token, certificate=certificate)
        server = asyncio.run_coroutine_threadsafe(starting, loop).result()
        try:
            yield server.url
        finally:
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
