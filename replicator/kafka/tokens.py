"""How the client library gets tokens: it asks whenever the one it has is old.

It asks in a thread of its own, at 80 % of the time that it was told, and ten seconds after a failure.
Ten seconds are too long, so there is always an answer: without a valid token the last one, for a short
time. The broker refuses that one, which is what would happen without any.
"""

import time
from collections.abc import Callable

from replicator.logins.token_source import TokenSource

ASKED_AGAIN_SECONDS = 2.0

Answer = tuple[str, float, str, dict[str, str]]
"""Token, its end in seconds since 1970, principal, and extensions."""


def token_callback(
    source: TokenSource, extensions: tuple[tuple[str, str], ...] = ()
) -> Callable[[str], Answer]:
    """The library's ``oauth_cb``; makes sure that there is a token before a client is made.

    Raises:
        AuthenticationFailedError: there is none.
    """
    source.current()

    def answer(_settings: str) -> Answer:
        token = source.last()
        ends_at = max(token.ends_at, time.time() + ASKED_AGAIN_SECONDS)
        return token.value, ends_at, token.principal, dict(extensions)

    return answer
