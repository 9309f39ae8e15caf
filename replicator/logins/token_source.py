"""The tokens of one cluster in this process: one is held, and renewed at 80 % of its life.

A client that logs in takes the token that is held. A renewal that fails is told at once, with the time at
which the token that is held ends, and tried again every few seconds until one comes.
"""

import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from replicator.backoff import Backoff
from replicator.errors import AuthenticationFailedError, ReplicatorError
from replicator.logins.token import RENEW_AT, STALE_AT, Token
from replicator.problem import Problem
from replicator.redaction import forget_secret

RETRY = Backoff(0.5, 3.0)


class TokenSource:
    """Thread-safe; ``fetch`` is called by one thread at a time."""

    def __init__(
        self,
        fetch: Callable[[], Token],
        *,
        subject: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        """``now`` is in seconds since 1970, as tokens have it."""
        self._fetch = fetch
        self._subject = subject
        self._now = now
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._before: Token | None = None
        self._failure: ReplicatorError | None = None
        self._failures = 0
        self._again_at = 0.0

    def current(self) -> Token:
        """A token that is valid now; only without one does this wait for the source.

        Raises:
            ReplicatorError: there is none, and the source just failed.
        """
        token = self._token
        if token is None or self._now() >= token.ends_at:
            with self._lock:
                self._renew()
            token = self._token
        if token is None or self._now() >= token.ends_at:
            raise self._failure or AuthenticationFailedError(
                "the source of tokens gives one that has expired",
                subject=self._subject,
                remedy="Check who renews it, and the clocks of both machines.",
            )
        return token

    def last(self) -> Token:
        """As ``current``; where no valid one is to be had, the one that was valid last.

        Raises:
            ReplicatorError: there never was one.
        """
        try:
            return self.current()
        except ReplicatorError:
            if self._token is None:
                raise
            return self._token

    def renew_when_due(self) -> None:
        """Fetches another token where the one that is held is old enough, or none is held."""
        token = self._token
        if token is None or self._now() >= token.at(RENEW_AT):
            with self._lock:
                self._renew()

    @property
    def ends_at(self) -> float | None:
        """When the token that is held ends; None while there is none."""
        return None if self._token is None else self._token.ends_at

    def problem(self) -> Problem | None:
        """What keeps the next token away, and until when the present one holds."""
        token, failure, now = self._token, self._failure, self._now()
        if failure is None and token is not None and now >= token.at(STALE_AT):
            failure = AuthenticationFailedError(
                "its source goes on giving the old one",
                remedy="Check who renews it: kubelet, an agent, or the token command.",
            )
        if failure is None:
            return None
        if token is None:
            return Problem(failure.code, self._subject, failure.message, failure.remedy)
        until = datetime.fromtimestamp(token.ends_at, UTC).isoformat(timespec="seconds")
        left = "it has expired" if now >= token.ends_at else f"the old one holds until {until}"
        detail = f"no new token, {left}: {failure.message}"
        return Problem("TOKEN_NOT_RENEWED", self._subject, detail, failure.remedy)

    def _renew(self) -> None:
        """With the lock: another thread may just have done it, or just have failed."""
        held, now = self._token, self._now()
        if (held is not None and now < held.at(RENEW_AT)) or now < self._again_at:
            return
        try:
            found = self._fetch()
        except ReplicatorError as error:
            self._failure = error
        else:
            self._failure = None
            if held is None or found.ends_at > held.ends_at:
                if self._before is not None:
                    forget_secret(self._before.value)
                self._before, self._token = held, found
                self._failures, self._again_at = 0, 0.0
                return
        self._failures += 1
        self._again_at = now + RETRY.seconds(self._failures, random.random)
