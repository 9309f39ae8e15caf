"""Which requests are let in, decided before any body is read. Pure.

Rules: probes and the console's static files carry no data and are open. Reading is open on
loopback; elsewhere it needs the token once there is one. Changing anything needs the token, always,
and is off without one. There is no CORS and no cookie, so no other site can act through a browser;
on loopback the Host header must name this machine, so none can read through DNS rebinding either.
"""

import hmac
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass

Token = str | Callable[[], str]
"""A bearer token, or what gives the one that is right at this moment; empty, none is."""

MAX_BODY_BYTES = 16 * 1024
MAX_TARGET_LENGTH = 4096
"""Characters of a path and its query."""

MAX_REQUESTS = 64
"""Answered at once, probes aside: they are always answered."""

PROBES = frozenset({"/livez", "/readyz"})
OPEN_PATHS = PROBES | {"/"}
OPEN_FOLDER = "/console/"
_READING = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class AccessPolicy:
    """Who may do what. ``token`` None: nothing can be changed over HTTP; empty: no token is right."""

    token: str | None
    read_token_required: bool
    loopback_only: bool


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What admission looks at; header values as sent, None when absent."""

    method: str
    path: str
    host: str | None = None
    authorization: str | None = None
    content_type: str | None = None
    content_length: str | None = None
    target_length: int = 0
    answering: int = 0
    """Requests other than probes that are being answered."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The answer instead of the resource."""

    status: int
    code: str
    detail: str
    remedy: str
    challenge: bool = False


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address bound as ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def access_policy(*, host: str, token: str | None) -> AccessPolicy:
    """The policy for a server bound to ``host``: off loopback reading needs the token, if any."""
    loopback = is_loopback(host)
    return AccessPolicy(
        token=token,
        read_token_required=not loopback and token is not None,
        loopback_only=loopback,
    )


def admit(request: RequestFacts, policy: AccessPolicy) -> Refusal | None:
    """None lets the request in."""
    if request.target_length > MAX_TARGET_LENGTH:
        return Refusal(
            414,
            "TOO_LONG",
            f"the path is longer than {MAX_TARGET_LENGTH} characters",
            "See /openapi.json for what there is.",
        )
    if request.answering >= MAX_REQUESTS and request.path not in PROBES:
        return Refusal(
            503,
            "BUSY",
            f"{MAX_REQUESTS} requests are being answered already",
            "Ask again in a moment.",
        )
    if policy.loopback_only and not _names_this_machine(request.host):
        return Refusal(
            421,
            "HOST",
            "this server answers on loopback only and does not know the host name that was asked",
            "Open it as http://127.0.0.1 or http://localhost.",
        )
    if request.method in _READING:
        is_open = request.path in OPEN_PATHS or request.path.startswith(OPEN_FOLDER)
        if is_open or not policy.read_token_required:
            return None
        return _check_token(request, policy, purpose="reading from another machine")
    return _check_token(request, policy, purpose="changing anything") or _check_body(request)


def _check_token(request: RequestFacts, policy: AccessPolicy, *, purpose: str) -> Refusal | None:
    if policy.token is None:
        return Refusal(
            403,
            "OFF",
            f"{purpose} over HTTP is off: the worker was started without a token",
            "Start it with --http-token-file, or use the command line.",
        )
    if request.authorization is None:
        return Refusal(
            401,
            "TOKEN_NEEDED",
            f"{purpose} over HTTP needs a token",
            "Send 'Authorization: Bearer' with the content of the worker's token file.",
            challenge=True,
        )
    scheme, _, given = request.authorization.partition(" ")
    # Bytes, because compare_digest refuses text that is not ASCII.
    same = hmac.compare_digest(given.strip().encode(), policy.token.encode())
    if not policy.token or scheme.lower() != "bearer" or not same:
        return Refusal(
            403,
            "TOKEN_WRONG",
            "the token is not this worker's",
            "Send 'Authorization: Bearer' with the content of the worker's token file.",
        )
    return None


def _check_body(request: RequestFacts) -> Refusal | None:
    media_type = (request.content_type or "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        return Refusal(
            415, "CONTENT_TYPE", "the body must be JSON", "Send 'Content-Type: application/json'."
        )
    length = request.content_length
    if length is None or not (length.isascii() and length.isdigit()):
        return Refusal(
            411, "LENGTH", "the length of the body is not stated", "Send a Content-Length header."
        )
    if len(length) > 9 or int(length) > MAX_BODY_BYTES:
        return Refusal(
            413,
            "TOO_LARGE",
            f"the body is larger than {MAX_BODY_BYTES} bytes",
            "Send one pause or resume per request.",
        )
    return None


def _names_this_machine(host: str | None) -> bool:
    if host is None:
        return True  # HTTP/1.0: no browser sends it
    name = host.strip().lower()
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    return is_loopback(name) or name.endswith(".localhost")
