"""The ASGI shell around admission: refuses before routing, adds security headers to every answer.

An exception that nothing else handles is logged here and answered without its details.
"""

from dataclasses import replace
from typing import Any

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from replicator.api.access.admission import (
    PROBES,
    AccessPolicy,
    Refusal,
    RequestFacts,
    Token,
    admit,
)
from replicator.observability.logging import get_logger
from replicator.redaction import redact_text

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

SHOWN_CHARACTERS = 200

_LOG = get_logger("api")
_FAILED = Refusal(500, "FAILED", "the worker failed to answer", "See the worker's log.")


class Guard:
    """Wraps the app; ``policy`` decides who gets through, with the token of the moment."""

    def __init__(self, app: ASGIApp, *, policy: AccessPolicy, token: Token | None) -> None:
        self._app = app
        self._policy = policy
        self._token = token
        self._answering = 0

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
                target_length=len(scope["path"]) + len(scope["query_string"]),
                answering=self._answering,
            ),
            self._policy_now(),
        )
        if refusal is None:
            counted = scope["path"] not in PROBES
            self._answering += counted
            try:
                await self._app(scope, receive, send_guarded)
            except Exception:
                if started:
                    raise  # half an answer is out: the server cuts the connection
                _LOG.exception("request failed", path=shown_path(scope["path"]))
                refusal = _FAILED
            finally:
                self._answering -= counted
        if refusal is not None:
            await _refuse(refusal, scope, send_guarded)

    def _policy_now(self) -> AccessPolicy:
        token = self._token() if callable(self._token) else self._token
        return replace(self._policy, token=token)


def shown_path(path: str) -> str:
    """A path as an answer or a log line repeats it: its beginning, without secrets."""
    return redact_text(path)[:SHOWN_CHARACTERS]


async def _refuse(refusal: Refusal, scope: Scope, send: Send) -> None:
    body = orjson.dumps(
        {
            "error": {
                "code": refusal.code,
                "subject": shown_path(scope["path"]),
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
