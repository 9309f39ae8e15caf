"""The ASGI shell around admission: refuses before routing, adds security headers to every answer."""

from typing import Any

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from replicator.api.admission import AccessPolicy, Refusal, RequestFacts, admit

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

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
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
            await self._app(scope, receive, send_guarded)
        else:
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
