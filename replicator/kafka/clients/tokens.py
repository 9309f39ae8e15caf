"""How the client library gets tokens: it asks whenever the one it has is old.

It asks in a thread of its own, at 80 % of the time that it was told, and ten seconds after a failure.
Told the token's own end, it would keep a token up to its last seconds, and brokers refuse who logs in
again within a second, which is how a client answers a session that is about to end. So it is told a
time at which it asks just after this process has renewed the token. And there is always an answer:
without a valid token the last one. The broker refuses that one, which is what would happen without any.
"""

import time
from collections.abc import Callable

from replicator.logins.token import RENEW_AT, Token
from replicator.logins.token_source import TokenSource

AFTER_RENEWAL_SECONDS = 1.5
"""By then the token was renewed: its source is looked at every second."""

SOONEST_SECONDS = 2.0
_LIBRARY_ASKS_AT = 0.8

Answer = tuple[str, float, str, dict[str, str]]
"""Token, the end that the library is told, in seconds since 1970, principal, and extensions."""


def token_callback(
    source: TokenSource, extensions: tuple[tuple[str, str], ...] = ()
) -> Callable[[str], Answer]:
    """The library's ``oauth_cb``; makes sure that there is a token before a client is made.

    Raises:
        AuthenticationFailedError: there is none.
    """
    source.current()

    def answer(_settings: str) -> Answer:
        source.renew_when_due()
        token = source.last()
        return token.value, told_end(token, time.time()), token.principal, dict(extensions)

    return answer


def told_end(token: Token, now: float) -> float:
    """The end of the token that makes the library ask again when there is another."""
    wanted = (token.at(RENEW_AT) + AFTER_RENEWAL_SECONDS - now) / _LIBRARY_ASKS_AT
    return now + max(SOONEST_SECONDS, wanted)
