"""What clients of one cluster log in with, as it is now; one object per cluster and process.

It looks at the referenced files once a second, and whenever a client is made. What can be used is a
candidate as a whole: a certificate with its key, or nothing. Once brokers have taken a login, another
one replaces it only after they took that as well. So what cannot be used, and what brokers refuse,
changes nothing: clients go on with what they have, new ones open with it too, and it is a problem.
"""

import os
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

from replicator.backoff import Backoff
from replicator.errors import AuthenticationFailedError, InputError, ReplicatorError
from replicator.logins.expiry import ends_of_certificates
from replicator.logins.fetch_token import fetch_token
from replicator.logins.token_source import TokenSource
from replicator.logins.usable import check_usable
from replicator.problem import Problem
from replicator.redaction import register_secret
from replicator.topology.file.secrets import ResolvedSecurity, references, resolve_security
from replicator.topology.plan import ClusterPlan

LOOK_SECONDS = 1.0
PATIENCE_SECONDS = 5.0
"""How long files may not fit together: certificate and key are seldom replaced in one step."""

REFUSED_AGAIN = Backoff(0.25, 5.0)
"""When a login that brokers refused is tried again: often they hear of it a moment after the file was written, or much later."""

IN_USE_REFUSED_SECONDS = 1.0
"""When it is tried again, at the latest, once brokers refuse what is in use: the other one is the right one by now."""

_LEAST_PAUSE_SECONDS = 0.1

SILENT_AGAIN_SECONDS = 1.0
"""When it is tried again after no broker answered."""

STILL_SECONDS = 60.0
"""A look that lasts longer never ends: a token has 10 s, and a trial 3 s for each of three brokers."""

Trial = Callable[[ClusterPlan, ResolvedSecurity], None]
"""Logs in to the cluster with exactly that: AuthenticationFailedError says that brokers refuse it,
another ReplicatorError that nobody answered."""


class ClusterLogin:
    """Thread-safe.

    Attributes:
        cluster: whose login.
        tokens: where clients take tokens from; None where the mechanism has none.
        version: grows with every change of what clients log in with.
        tls_version: grows with every change of authorities, certificate or key. A client that was made
            before has to be made anew; a password is taken in place.
        followed: whether anything of it may change while the process runs.
        proven: whether brokers have taken what is in use.
        refusal: why brokers do not take what the files hold now.
        wake: set for a look at once.
    """

    def __init__(self, cluster: ClusterPlan, *, trial: Trial | None = None) -> None:
        """Nothing is read yet. Without a ``trial`` of its own it uses the one of ``try_with``."""
        self.cluster = cluster
        self.version = 0
        self.tls_version = 0
        self.tokens: TokenSource | None = None
        self.proven = False
        self.refusal: AuthenticationFailedError | None = None
        self.wake = threading.Event()
        self._trial = trial
        self._try_at = self._tried_at = 0.0
        self._refusals = 0
        self._followed_at = time.monotonic()
        self._subject = f"cluster:{cluster.alias}"
        self._lock = threading.Lock()
        self._security: ResolvedSecurity | None = None
        self._candidate: ResolvedSecurity | None = None
        self._failure: ReplicatorError | None = None
        self._failed_at = 0.0
        # A pipe gives its content to one reader only.
        files = [Path(each.file) for _, each in references(cluster.security) if each.file]
        self._readable_again = all(file.is_file() or not file.exists() for file in files)
        self._has_files = bool(files) and self._readable_again
        self.followed = cluster.security.uses_tokens or self._has_files
        if cluster.security.uses_tokens:
            self.tokens = TokenSource(lambda: fetch_token(cluster), subject=self._subject)

    def security(self) -> ResolvedSecurity:
        """What to log in with now: the last that brokers took; before they took any, the newest.

        Raises:
            SecretUnavailableError: a secret is missing, and nothing was used before.
            InputError: certificate or key cannot be used, and nothing was used before.
        """
        self.look()
        if self._security is None:
            raise self._failure or InputError("nothing to log in with", subject=self._subject)
        return self._security

    def look(self) -> None:
        """Reads everything again; what is new and can be used becomes the candidate."""
        with self._lock:
            if self._security is not None and not self._readable_again:
                return
            try:
                found = resolve_security(self.cluster)
                if found not in {self._security, self._candidate}:
                    check_usable(self.cluster, found)
            except ReplicatorError as error:
                if self._failure is None:
                    self._failed_at = time.monotonic()
                self._failure = error
                self._candidate = None
                return
            self._failure = None
            if found == self._security:
                self._candidate = None
                if self.proven:
                    self.refusal = None
            elif not self.proven:
                self._take(found)
            elif found != self._candidate:
                self._candidate = found
                self.refusal, self._try_at, self._refusals = None, 0.0, 0
                self.wake.set()

    def _take(self, security: ResolvedSecurity) -> None:
        before, self._security = self._security, security
        self._candidate = self.refusal = None
        self._try_at, self._refusals = 0.0, 0
        self.version += 1
        if before is None or _tls_of(security) != _tls_of(before):
            self.tls_version += 1

    def ask(self) -> None:
        """Has brokers try what they have not taken yet: the candidate, or what is in use."""
        trial, now = self._trial or _TRIAL, time.monotonic()
        with self._lock:
            tried = self._candidate or (None if self.proven else self._security)
            if tried is None or trial is None or not self._has_files or now < self._try_at:
                return
            if self.tokens is not None and self.tokens.problem() is not None:
                return  # it would tell of the token, not of the files
            self._tried_at = now
        try:
            trial(self.cluster, tried)
        except AuthenticationFailedError as error:
            with self._lock:
                if tried in {self._candidate, self._security}:
                    self.refusal = error
                    self._refusals += 1
                    self._try_at = time.monotonic() + REFUSED_AGAIN.seconds(self._refusals)
        except ReplicatorError:
            self._try_at = time.monotonic() + SILENT_AGAIN_SECONDS
        else:
            self.taken(tried)

    def taken(self, security: ResolvedSecurity) -> None:
        """Brokers took this login; where it is the candidate, it is in use from now on."""
        if self.proven and security is self._security:
            return
        with self._lock:
            if security == self._candidate:
                self._take(security)
            if security == self._security:
                self.proven = True
                if self._candidate is None:
                    self.refusal = None

    def refused(self, security: ResolvedSecurity) -> None:
        """Brokers refused this login; where it is the one in use, what the files hold now is tried soon."""
        with self._lock:
            if self._candidate is None or security != self._security:
                return
            self._try_at = min(self._try_at, self._tried_at + IN_USE_REFUSED_SECONDS)
        self.wake.set()

    @property
    def pause_seconds(self) -> float:
        """Until the next look is due."""
        if self._candidate is None:
            return LOOK_SECONDS
        return min(LOOK_SECONDS, max(_LEAST_PAUSE_SECONDS, self._try_at - time.monotonic()))

    @property
    def undecided(self) -> bool:
        """Whether the files hold another login, which brokers have not taken."""
        return self._candidate is not None

    def kept(self) -> ResolvedSecurity | None:
        """What brokers took and the files hold no longer; None where they hold it."""
        with self._lock:
            other = self._candidate is not None or self._failure is not None
            return self._security if self.proven and other else None

    def keep(self, security: ResolvedSecurity) -> None:
        """Begins with what another process knows that brokers took; no change of what is in use."""
        for secret in (security.password, security.key, security.key_password):
            if secret:
                register_secret(secret)
        with self._lock:
            if self._security is None:
                self._take(security)
                self.proven = True

    def problem(self) -> Problem | None:
        """What is wrong with new files, with brokers that do not take them, or with tokens."""
        still = time.monotonic() - self._followed_at
        if self.followed and still >= STILL_SECONDS:
            return Problem(
                "LOGIN_NOT_FOLLOWED", self._subject,
                f"its files and tokens have not been looked at for {still:.0f} s",
                "Restart this worker and report its log.",
            )  # fmt: skip
        failure = self._failure
        if failure is not None and time.monotonic() - self._failed_at >= PATIENCE_SECONDS:
            detail = failure.message
            if self._security is not None:
                detail = f"what was there before stays in use: {detail}"
            return Problem("CREDENTIALS_UNUSABLE", self._subject, detail, failure.remedy)
        if (refusal := self.refusal) is not None:
            stays = "what was there before stays in use: " if self._candidate else ""
            detail = f"{stays}brokers refuse what the files hold now: {refusal.message}"
            return Problem("CREDENTIALS_UNUSABLE", self._subject, detail, refusal.remedy)
        return None if self.tokens is None else self.tokens.problem()

    def expiries(self) -> dict[str, float]:
        """When what is in use ends, in seconds since 1970: ``certificate``, ``ca`` and ``token``.

        Of a chain the first certificate to end counts, of authorities the last.
        """
        found: dict[str, float] = {}
        security = self._security
        if security is not None:
            if security.certificate and (ends := ends_of_certificates(security.certificate)):
                found["certificate"] = min(ends)
            if security.ca and (ends := ends_of_certificates(security.ca)):
                found["ca"] = max(ends)
        if self.tokens is not None and (ends_at := self.tokens.ends_at) is not None:
            found["token"] = ends_at
        return found

    def follow(self) -> None:
        """One look at everything, for the thread that follows it; nothing ends that."""
        try:
            self.look()
            if self.tokens is not None:
                self.tokens.renew_when_due()
            self.ask()
            self._followed_at = time.monotonic()
        except Exception as error:  # noqa: BLE001  who is not followed any more must be told
            self._failure = ReplicatorError(f"unexpected: {error!r}", subject=self._subject)


_TRIAL: Trial | None = None


def try_with(trial: Trial) -> None:
    """How logins of this process are tried; given by the room above, which speaks the protocol."""
    global _TRIAL  # noqa: PLW0603  one for the process
    _TRIAL = trial


_LOGINS: "weakref.WeakValueDictionary[ClusterPlan, ClusterLogin]" = weakref.WeakValueDictionary()
_LOCK = threading.Lock()


def login_of(cluster: ClusterPlan) -> ClusterLogin:
    """The login of a cluster in this process; it is followed for as long as somebody holds it."""
    with _LOCK:
        login = _LOGINS.get(cluster)
        if login is None:
            login = _LOGINS[cluster] = ClusterLogin(cluster)
            if login.followed:
                threading.Thread(
                    target=_follow, args=(weakref.ref(login), login.wake),
                    name=f"login-{cluster.alias}", daemon=True,
                ).start()  # fmt: skip
        return login


def _tls_of(security: ResolvedSecurity) -> tuple[str | None, ...]:
    return security.ca, security.certificate, security.key, security.key_password


def _follow(reference: "weakref.ref[ClusterLogin]", wake: threading.Event) -> None:
    pause_seconds = LOOK_SECONDS
    while True:
        wake.wait(pause_seconds)  # files are swapped without an event that all file systems have
        wake.clear()
        login = reference()
        if login is None:
            return
        login.follow()
        pause_seconds = login.pause_seconds
        del login


def _forget() -> None:
    """In a forked child: no thread follows here what the parent's thread follows there."""
    global _LOCK  # noqa: PLW0603  another thread of the parent may have held it
    _LOCK = threading.Lock()
    _LOGINS.clear()


os.register_at_fork(after_in_child=_forget)
