"""The uvicorn server of one worker. Importing this is slow (FastAPI, uvicorn): see ``server``."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from replicator.api.access.admission import Token, access_policy
from replicator.api.routes.app import create_app
from replicator.api.routes.provider import StatusProvider
from replicator.api.server.address import BoundPort
from replicator.api.server.certificate import ServerCertificate
from replicator.api.server.connection import MOST_HEAD_BYTES, BoundedConnection

TICK_SECONDS = 5.0


class WorkerHttp(uvicorn.Server):
    """Leaves signals to the worker, which drains by its own rules; ``up`` is set once it answers."""

    def __init__(self, config: uvicorn.Config, certificate: ServerCertificate | None) -> None:
        super().__init__(config)
        if certificate is not None:
            config.load()
            config.ssl = certificate.context
        self._certificate = certificate
        self.up = asyncio.Event()
        self._leaving = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Captures none."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts, then sets ``up``."""
        await super().startup(sockets=sockets)
        self.up.set()

    async def main_loop(self) -> None:
        """Runs until ``leave``, with few ticks: ten a second cost an idle worker 0.2 % of a core."""
        tenths = 0
        while not await self.on_tick(tenths):
            tenths += round(10 * TICK_SECONDS)
            if self._certificate is not None:
                self._certificate.refresh()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._leaving.wait(), TICK_SECONDS)

    def leave(self) -> None:
        """Answers what is being answered, then ends; from the loop's own thread."""
        self.should_exit = True
        self._leaving.set()


def build_server(
    provider: StatusProvider,
    *,
    bound: BoundPort,
    token: Token | None,
    certificate: ServerCertificate | None = None,
) -> WorkerHttp:
    """The server for that port, with TLS if there is a certificate.

    Who may do what follows from host and token.
    """
    policy = access_policy(host=bound.host, token=token() if callable(token) else token)
    app = create_app(
        provider,
        token=token,
        read_token_required=policy.read_token_required,
        loopback_only=policy.loopback_only,
    )
    return WorkerHttp(
        uvicorn.Config(
            app,
            log_config=None,  # logs go the way of every other log
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=2,
            timeout_keep_alive=10,
            http=BoundedConnection,
            h11_max_incomplete_event_size=MOST_HEAD_BYTES,
        ),
        certificate,
    )
