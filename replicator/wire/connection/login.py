"""The steps of a SASL login, for our own connections."""

from typing import Any

from replicator.logins.cluster_login import ClusterLogin
from replicator.logins.token_source import TokenSource
from replicator.topology.file.secrets import ResolvedSecurity
from replicator.wire.connection.protocol import AbstractTokenProvider, get_sasl_mechanism


def login_steps(login: ClusterLogin, security: ResolvedSecurity) -> Any:  # noqa: ANN401
    """The library's object for the mechanism: ``auth_bytes``, ``receive``, ``is_done``."""
    mechanism = security.mechanism or "PLAIN"
    username = security.username or ""
    if mechanism.startswith("SCRAM"):
        # RFC 5802: these two have a meaning in the messages; the library does not replace them.
        username = username.replace("=", "=3D").replace(",", "=2C")
    config: dict[str, Any] = {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": username,
        "sasl_plain_password": security.password or "",
    }
    if login.tokens is not None:
        oauth = login.cluster.security.oauth
        extensions = dict(oauth.extensions) if oauth else {}
        config["sasl_oauth_token_provider"] = _Tokens(login.tokens, extensions)
    return get_sasl_mechanism(mechanism)(**config)


class _Tokens(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python carries no types
    """The token that is held at the moment of the login."""

    def __init__(self, source: TokenSource, extensions: dict[str, str]) -> None:
        super().__init__()
        self._source = source
        self._extensions = extensions

    def token(self) -> str:
        """A valid one; raises AuthenticationFailedError without."""
        return self._source.current().value

    def extensions(self) -> dict[str, str]:
        """Extra fields of the login."""
        return self._extensions
