"""The ASGI shell around admission: refuses before routing, adds security headers to every answer.

It is also the last net: what nobody foresaw is logged here and answered without its internals.
"""

from typing import Any

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from replicator.api.admission import AccessPolicy, Refusal, RequestFacts, admit
from replicator.observability.logging import get_logger

SECURITY_HEADERS = {
    # The console is the only page and loads from here alone.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}

_LOG = get_logger("api")
_FAILED = Refusal(500, "FAILED", "the worker failed to answer", "See the worker's log.")


class Guard:
    """Wraps the app; ``policy`` decides who gets through."""

    def __init__(self, app: ASGIApp, *, policy: AccessPolicy) -> None:
        self._app = app
        self._policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets the request through, or answers it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        headers = Headers(scope=scope)
        refusal = admit(
            RequestFacts(
                method=scope["method"],
                path=scope["path"],
                host=headers.get("host"),
                authorization=headers.get("authorization"),
                content_type=headers.get("content-type"),
                content_length=headers.get("content-length"),
            ),
            self._policy,
        )
        if refusal is None:
            try:
                await self._app(scope, receive, send_guarded)
            except Exception:
                if started:
                    raise  # half an answer is out: the server cuts the connection
                _LOG.exception("request failed", path=scope["path"])
                refusal = _FAILED
        if refusal is not None:
            await _refuse(refusal, scope, send_guarded)


async def _refuse(refusal: Refusal, scope: Scope, send: Send) -> None:
    body = orjson.dumps(
        {
            "error": {
                "code": refusal.code,
                "subject": scope["path"],
                "detail": refusal.detail,
                "remedy": refusal.remedy,
            }
        }
    )
    headers: list[tuple[bytes, bytes]] = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    if refusal.challenge:
        headers.append((b"www-authenticate", b'Bearer realm="replicator"'))
    start: dict[str, Any] = {
        "type": "http.response.start",
        "status": refusal.status,
        "headers": headers,
    }
    await send(start)
    empty = scope["method"] == "HEAD"
    await send({"type": "http.response.body", "body": b"" if empty else body})
