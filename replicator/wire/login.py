"""The steps of a SASL login, for our own connections.

OAUTHBEARER asks a token endpoint with the client-credentials grant (RFC 6749, section 4.4); user
name and password of the security block are client id and secret, and the endpoint is the cluster's
setting ``sasl.oauthbearer.token.endpoint.url``, as for the client library.
"""

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from replicator.errors import AuthenticationFailedError, InputError
from replicator.redaction import register_secret
from replicator.topology.plan import ClusterPlan
from replicator.topology.secrets import ResolvedSecurity
from replicator.wire.protocol import AbstractTokenProvider, get_sasl_mechanism

_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_SCOPE = "sasl.oauthbearer.scope"
_EXTENSIONS = "sasl.oauthbearer.extensions"


def login_steps(cluster: ClusterPlan, security: ResolvedSecurity, *, deadline: float) -> Any:  # noqa: ANN401
    """The library's object for the mechanism: ``auth_bytes``, ``receive``, ``is_done``.

    Raises:
        InputError: OAUTHBEARER without a token endpoint.
    """
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
    if mechanism == "OAUTHBEARER":
        config["sasl_oauth_token_provider"] = _Tokens(cluster, security, deadline)
    return get_sasl_mechanism(mechanism)(**config)


class _Tokens(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python carries no types
    """One token for one login."""

    def __init__(self, cluster: ClusterPlan, security: ResolvedSecurity, deadline: float) -> None:
        super().__init__()
        self._settings = dict(cluster.kafka)
        self._security = security
        self._deadline = deadline
        self._subject = f"cluster:{cluster.alias}"
        if not self._settings.get(_ENDPOINT, "").startswith(("https://", "http://")):
            raise InputError(
                f"OAUTHBEARER needs {_ENDPOINT}",
                subject=self._subject,
                remedy="Set it in the cluster's kafka block.",
            )

    def token(self) -> str:
        """Asks the endpoint for a token."""
        login = f"{self._security.username or ''}:{self._security.password or ''}".encode()
        fields = {"grant_type": "client_credentials"}
        if scope := self._settings.get(_SCOPE):
            fields["scope"] = scope
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
            self._settings[_ENDPOINT],
            data=urllib.parse.urlencode(fields).encode(),
            headers={"Authorization": f"Basic {base64.b64encode(login).decode()}"},
        )
        left = max(0.1, self._deadline - time.monotonic())
        try:
            with urllib.request.urlopen(request, timeout=left) as answer:  # noqa: S310 - as above
                token = str(json.load(answer)["access_token"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise AuthenticationFailedError(
                f"the token endpoint gave no token: {type(error).__name__}",
                subject=self._subject,
                remedy="Check the endpoint, client id (username) and client secret (password).",
            ) from error
        register_secret(token)
        return token

    def extensions(self) -> dict[str, str]:
        """Extra fields of the login: ``a=b,c=d`` in the settings."""
        text = self._settings.get(_EXTENSIONS, "")
        pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
        return {name.strip(): value for name, _, value in pairs}
