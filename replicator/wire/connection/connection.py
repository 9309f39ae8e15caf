"""One blocking connection to one broker: TLS, login, request and response.

For single requests that the client library cannot make, off the hot path. One thread at a time.
"""

import math
import socket
import ssl
import time
from collections.abc import Sequence
from typing import Any, Self

from replicator.errors import AuthenticationFailedError, ReplicatorError, UnreachableError
from replicator.logins.cluster_login import ClusterLogin, login_of
from replicator.logins.tls import tls_context
from replicator.topology.file.secrets import ResolvedSecurity
from replicator.topology.plan import ClusterPlan
from replicator.wire.connection.errors import code_error, socket_error
from replicator.wire.connection.login import login_steps
from replicator.wire.connection.protocol import (
    ApiMessage,
    ApiVersionsRequest,
    KafkaProtocol,
    ProtocolError,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from replicator.wire.connection.tcp import open_tcp

_RECEIVE_BYTES = 256 * 1024

RENEW_AT = 0.7
"""The part of a session after which a connection logs in again: brokers cut one whose session is over."""

_LATEST = 0.9
"""The part of a session up to which it waits for what brokers say about a login that has just changed."""

_SOONEST_SECONDS = 1.2  # brokers refuse who logs in again within a second

_SASL_VERSION = 1  # says how long the session lasts


class BrokerConnection:
    """Connects, logs in, and learns which versions of which requests the broker knows.

    Raises:
        UnreachableError: no connection before the deadline.
        AuthenticationFailedError: the login or the certificate was refused.
        InputError: what the topology says about security cannot be used.
    """

    def __init__(
        self,
        cluster: ClusterPlan,
        address: tuple[str, int],
        *,
        client_id: str,
        deadline: float,
        security: ResolvedSecurity | None = None,
    ) -> None:
        """With ``security`` it logs in with that, whatever is in use."""
        self._subject = f"cluster:{cluster.alias}"
        self.address = address
        self.where = f"{address[0]}:{address[1]}"
        self._client_id = client_id
        self._protocol = KafkaProtocol(client_id=client_id)
        self.renew_at = math.inf
        """When it should log in again, on the monotonic clock; brokers set limits (KIP-368)."""
        self._renew_latest = math.inf
        # Held for as long as the connection: tokens are renewed for those who hold their login.
        self._login = login = login_of(cluster)
        security = security or login.security()
        context = tls_context(cluster, security)
        self._socket = self._connect(address, context, deadline)
        try:
            answer = self._exchange(ApiVersionsRequest(version=0), deadline)
            self._check(answer.error_code, "ask the broker for its versions")
            self.versions: dict[int, tuple[int, int]] = {
                each.api_key: (each.min_version, each.max_version) for each in answer.api_keys
            }
            if security.mechanism is not None:
                self._log_in(login, security, security.mechanism, deadline)
            login.taken(security)
        except BaseException as error:
            self._socket.close()
            if isinstance(error, AuthenticationFailedError):
                login.refused(security)
            raise

    def call(self, request: ApiMessage, *, newest: int, deadline: float) -> Any:  # noqa: ANN401
        """Sends a request in the newest version that we and the broker know; returns the response.

        Args:
            request: one of the protocol's messages, without a version.
            newest: the newest version the caller is written for.
            deadline: on the monotonic clock.

        Raises:
            UnsupportedBrokerError: the broker does not know the request in a version we do.
            UnreachableError: no answer in time; the connection is of no use any more.
        """
        self._stay_logged_in(deadline)
        request.API_VERSION = self._fitting(request, newest)
        return self._exchange(request, deadline)

    def call_many(
        self, requests: Sequence[ApiMessage], *, newest: int, deadline: float
    ) -> list[Any]:
        """As ``call``, for some small requests of one kind: all are sent before the first answer is waited for."""
        self._stay_logged_in(deadline)
        for request in requests:
            request.API_VERSION = self._fitting(request, newest)
        return self._exchange_all(requests, deadline)

    def call_raw(self, request: ApiMessage, *, newest: int, deadline: float) -> tuple[int, bytes]:
        """Like ``call``, but returns the version and the response as it came.

        For callers who can tell from its bytes that it says nothing new. It begins after the
        correlation id.

        Raises:
            UnsupportedBrokerError: the broker does not know the request in a version we do.
            UnreachableError: no answer in time; the connection is of no use any more.
        """
        version, encoded = self.encode(request, newest=newest)
        return version, self.exchange(encoded, deadline=deadline)

    def encode(self, request: ApiMessage, *, newest: int) -> tuple[int, bytes]:
        """The version and the bytes to be given to ``exchange``, for questions that are asked again.

        Raises:
            UnsupportedBrokerError: the broker does not know the request in a version we do.
        """
        version = self._fitting(request, newest)
        request.API_VERSION = version
        request.with_header(correlation_id=0, client_id=self._client_id)
        return version, request.encode(framed=True, header=True)

    def exchange(self, encoded: bytes, *, deadline: float) -> bytes:
        """Sends what ``encode`` made; returns the response from behind its correlation id.

        Raises:
            UnreachableError: no answer in time; the connection is of no use any more.
        """
        self._stay_logged_in(deadline)
        try:
            self._socket.settimeout(_left(deadline))
            self._socket.sendall(encoded)
            size = int.from_bytes(self._receive(4, deadline), "big")
            return self._receive(size, deadline)[4:]
        except OSError as error:
            raise socket_error(error, subject=self._subject, where=self.where) from error

    def _fitting(self, request: ApiMessage, newest: int) -> int:
        oldest_there, newest_there = self.versions.get(request.API_KEY, (0, -1))
        version = min(newest, newest_there)
        if version < oldest_there:
            raise code_error(35, subject=self._subject, doing=f"send {request.name}")
        return version

    def _receive(self, size: int, deadline: float) -> bytes:
        """Exactly so many bytes."""
        parts: list[bytes] = []
        while size > 0:
            self._socket.settimeout(_left(deadline))
            data = self._socket.recv(min(size, _RECEIVE_BYTES))
            if not data:
                raise self._hung_up()
            parts.append(data)
            size -= len(data)
        return b"".join(parts)

    def into_socket(self) -> socket.socket:
        """Gives the socket away, connected and logged in; the connection is of no use any more."""
        return self._socket

    def close(self) -> None:
        """Hangs up."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(
        self, address: tuple[str, int], context: ssl.SSLContext | None, deadline: float
    ) -> socket.socket:
        try:
            plain = open_tcp(address, _left(deadline))
        except OSError as error:
            raise socket_error(error, subject=self._subject, where=self.where) from error
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is None:
                return plain
            plain.settimeout(_left(deadline))
            return context.wrap_socket(plain, server_hostname=address[0])
        except OSError as error:
            plain.close()
            raise socket_error(error, subject=self._subject, where=self.where) from error

    def _exchange(self, request: ApiMessage, deadline: float) -> Any:  # noqa: ANN401
        return self._exchange_all([request], deadline)[0]

    def _exchange_all(self, requests: Sequence[ApiMessage], deadline: float) -> list[Any]:
        """A broker answers the requests of one connection in their order."""
        for request in requests:
            self._protocol.send_request(request)
        answers: list[Any] = []
        try:
            self._socket.settimeout(_left(deadline))
            self._socket.sendall(self._protocol.send_bytes())
            while len(answers) < len(requests):
                self._socket.settimeout(_left(deadline))
                data = self._socket.recv(_RECEIVE_BYTES)
                if not data:
                    raise self._hung_up()
                answers += self._decoded(data)
        except OSError as error:
            raise socket_error(error, subject=self._subject, where=self.where) from error
        return answers

    def _decoded(self, data: bytes) -> list[Any]:
        try:
            return [answer for _, answer in self._protocol.receive_bytes(data)]
        except Exception as error:  # the library raises whatever it runs into among wrong bytes
            said = str(error) if isinstance(error, ProtocolError) else repr(error)
            raise UnreachableError(
                f"{self.where} does not answer as a Kafka broker: {said}",
                subject=self._subject,
                remedy="Check bootstrapServers and security.protocol.",
            ) from error

    def _stay_logged_in(self, deadline: float) -> None:
        """Logs in again on the same connection where its session is old enough.

        Not without a valid token: what there is now goes on until the session ends. And as late as possible while
        brokers have not taken a changed login: they may refuse the one in use by now, and cut the connection.
        """
        now = time.monotonic()
        if now < self.renew_at:
            return
        security, tokens = self._login.security(), self._login.tokens
        if self._login.undecided and now < self._renew_latest:
            return
        if security.mechanism is None or (tokens is not None and tokens.problem() is not None):
            return
        try:
            self._log_in(self._login, security, security.mechanism, deadline)
        except AuthenticationFailedError:
            self._login.refused(security)
            raise

    def _log_in(
        self, login: ClusterLogin, security: ResolvedSecurity, mechanism: str, deadline: float
    ) -> None:
        doing = f"log in with {mechanism}"
        answer = self._exchange(SaslHandshakeRequest(mechanism=mechanism, version=1), deadline)
        offered = ", ".join(answer.mechanisms)
        self._check(answer.error_code, doing, f"the listener offers {offered}")
        steps = login_steps(login, security)
        session_ms = 0
        version = min(_SASL_VERSION, self.versions.get(SaslAuthenticateRequest.API_KEY, (0, 0))[1])
        try:
            while not steps.is_done():
                request = SaslAuthenticateRequest(auth_bytes=steps.auth_bytes(), version=version)
                answer = self._exchange(request, deadline)
                self._check(answer.error_code, doing, answer.error_message or "")
                steps.receive(answer.auth_bytes)
                session_ms = getattr(answer, "session_lifetime_ms", 0) or session_ms
        except (ValueError, KeyError) as error:
            raise AuthenticationFailedError(
                f"cannot {doing}: the broker's answer is not valid",
                subject=self._subject,
                remedy="Check that this is the cluster you mean: it does not know our password.",
            ) from error
        now, session = time.monotonic(), session_ms / 1000 or math.inf
        self.renew_at = now + max(_SOONEST_SECONDS, session * RENEW_AT)
        self._renew_latest = now + session * _LATEST

    def _check(self, code: int, doing: str, detail: str = "") -> None:
        if code:
            raise code_error(code, subject=self._subject, doing=doing, detail=detail)

    def _hung_up(self) -> ReplicatorError:
        return UnreachableError(
            f"{self.where} hangs up on us",
            subject=self._subject,
            remedy="Check security.protocol: this looks like a listener of another kind.",
        )


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
