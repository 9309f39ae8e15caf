"""A bearer token: what it says about its own life, and when it is renewed. Pure."""

import base64
import binascii
import json
from dataclasses import dataclass, field
from typing import Any

RENEW_AT = 0.8
"""The part of a token's life after which another is fetched."""

STALE_AT = 0.9
"""The part after which a source that gives the same token again has failed: kubelet writes a new one
at 80 %, a minute or two later."""

OPAQUE_SECONDS = 300.0
"""How long a token that says nothing about itself is taken to live, counted from when it was read."""


@dataclass(frozen=True, slots=True)
class Token:
    """``begins_at`` and ``ends_at`` are seconds since 1970 on this machine's clock."""

    value: str = field(repr=False)
    begins_at: float
    ends_at: float
    principal: str = ""

    def at(self, part: float) -> float:
        """When that part of its life is over."""
        return self.begins_at + part * (self.ends_at - self.begins_at)


def read_token(text: str, *, now: float) -> Token:
    """A token as a file, a command or a token endpoint gives it: bare, or JSON around it.

    A life in seconds counts from now, by this machine's clock. The times of a JWT are another
    machine's, and only hold where nothing else is said.

    Raises:
        ValueError: there is no token in it; says what is wrong without showing any of it.
    """
    text = text.strip()
    seconds: float | None = None
    if text.startswith("{"):
        try:
            answer = json.loads(text)
            text = str(answer["access_token"] or "")
            seconds = float(answer["expires_in"]) if answer.get("expires_in") else None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ValueError("it is JSON without access_token") from None
    if not text:
        raise ValueError("it is empty")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("it is not one word of printable characters")
    claims = jwt_claims(text)
    principal = str(claims.get("sub") or "")
    if seconds is not None:
        return Token(text, now, now + seconds, principal)
    ends_at = _number(claims.get("exp"))
    if ends_at is None:
        return Token(text, now, now + OPAQUE_SECONDS, principal)
    begins_at = _number(claims.get("iat"))
    return Token(text, min(now if begins_at is None else begins_at, ends_at), ends_at, principal)


def jwt_claims(token: str) -> dict[str, Any]:
    """What a JWT says, unchecked: the brokers check it. Empty for any other token."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, binascii.Error):
        return {}
    return claims if isinstance(claims, dict) else {}


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
