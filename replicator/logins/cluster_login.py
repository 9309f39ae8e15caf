"""What clients of one cluster log in with, as it is now; one object per cluster and process.

It looks at the referenced files once a second, and whenever a client is made. What can be used is
taken as a whole: a certificate with its key, or nothing. What cannot be used changes nothing, clients
go on with what they have, and it is a problem once it has lasted for a moment.
"""

import os
import threading
import time
import weakref
from pathlib import Path

from replicator.errors import InputError, ReplicatorError
from replicator.logins.expiry import ends_of_certificates
from replicator.logins.fetch_token import fetch_token
from replicator.logins.token_source import TokenSource
from replicator.problem import Problem
from replicator.topology.plan import ClusterPlan
from replicator.topology.secrets import ResolvedSecurity, references, resolve_security

LOOK_SECONDS = 1.0
PATIENCE_SECONDS = 5.0
"""How long files may not fit together: certificate and key are seldom replaced in one step."""


class ClusterLogin:
    """Thread-safe.

    Attributes:
        cluster: whose login.
        tokens: where clients take tokens from; None where the mechanism has none.
        version: grows with every change of what clients log in with.
        tls_version: grows with every change of authorities, certificate or key. A client that was made
            before has to be made anew; a password is taken in place.
        followed: whether anything of it may change while the process runs.
        accepted: the version that a broker was seen to take, before clients that work were given up.
        refusal: why brokers do not take what is there now.
        tried_at: when a broker was asked last, on the monotonic clock.
    """

    def __init__(self, cluster: ClusterPlan) -> None:
        """Nothing is read yet."""
        self.cluster = cluster
        self.version = 0
        self.tls_version = 0
        self.tokens: TokenSource | None = None
        self.accepted = 0
        self.refusal: ReplicatorError | None = None
        self.tried_at = -60.0
        self._subject = f"cluster:{cluster.alias}"
        self._lock = threading.Lock()
        self._security: ResolvedSecurity | None = None
        self._failure: ReplicatorError | None = None
        self._failed_at = 0.0
        # A pipe gives its content to one reader only.
        files = [Path(each.file) for _, each in references(cluster.security) if each.file]
        self._readable_again = all(file.is_file() or not file.exists() for file in files)
        self.followed = cluster.security.uses_tokens or (bool(files) and self._readable_again)
        if cluster.security.uses_tokens:
            self.tokens = TokenSource(lambda: fetch_token(cluster), subject=self._subject)

    def security(self) -> ResolvedSecurity:
        """What to log in with now; with files that cannot be used, what was used before.

        Raises:
            SecretUnavailableError: a secret is missing, and nothing was used before.
            InputError: certificate or key cannot be used, and nothing was used before.
        """
        self.look()
        if self._security is None:
            raise self._failure or InputError("nothing to log in with", subject=self._subject)
        return self._security

    def look(self) -> None:
        """Reads everything again and takes it where it is new and can be used."""
        with self._lock:
            if self._security is not None and not self._readable_again:
                return
            try:
                found = resolve_security(self.cluster)
                if found != self._security:
                    check_usable(self.cluster, found)
            except ReplicatorError as error:
                if self._failure is None:
                    self._failed_at = time.monotonic()
                self._failure = error
                return
            self._failure = None
            if found == self._security:
                return
            before, self._security = self._security, found
            self.version += 1
            self.refusal, self.tried_at = None, -60.0
            if before is None or _tls_of(found) != _tls_of(before):
                self.tls_version += 1

    def problem(self) -> Problem | None:
        """What is wrong with new files, with brokers that do not take them, or with tokens."""
        failure = self._failure
        if failure is not None and time.monotonic() - self._failed_at >= PATIENCE_SECONDS:
            detail = failure.message
            if self._security is not None:
                detail = f"what was there before stays in use: {detail}"
            return Problem("CREDENTIALS_UNUSABLE", self._subject, detail, failure.remedy)
        if (refusal := self.refusal) is not None:
            detail = f"open connections stay: brokers refuse the new certificate: {refusal.message}"
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
        except Exception as error:  # noqa: BLE001  who is not followed any more must be told
            self._failure = ReplicatorError(f"unexpected: {error!r}", subject=self._subject)


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
                    target=_follow, args=(weakref.ref(login),),
                    name=f"login-{cluster.alias}", daemon=True,
                ).start()  # fmt: skip
        return login


def check_usable(cluster: ClusterPlan, security: ResolvedSecurity) -> None:
    """Tells what no client could use.

    Raises:
        InputError: authorities, certificate or key are not PEM, or do not belong together.
    """
    if security.ca is None and security.certificate is None:
        return
    from replicator.logins.tls import tls_context  # slow to import

    tls_context(cluster, security)
    try:
        ends_of_certificates(f"{security.ca or ''}\n{security.certificate or ''}")
    except ValueError as error:
        raise InputError(
            f"ca or certificate cannot be used: {error}",
            subject=f"cluster:{cluster.alias}",
            remedy="Each must be PEM text.",
        ) from None


def _tls_of(security: ResolvedSecurity) -> tuple[str | None, ...]:
    return security.ca, security.certificate, security.key, security.key_password


def _follow(reference: "weakref.ref[ClusterLogin]") -> None:
    while True:
        time.sleep(LOOK_SECONDS)  # files are swapped without an event that all file systems have
        login = reference()
        if login is None:
            return
        login.follow()
        del login


def _forget() -> None:
    """In a forked child: no thread follows here what the parent's thread follows there."""
    global _LOCK  # noqa: PLW0603  another thread of the parent may have held it
    _LOCK = threading.Lock()
    _LOGINS.clear()


os.register_at_fork(after_in_child=_forget)
