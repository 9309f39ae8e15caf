"""The part of the file format that says what clusters there are and how to connect to them."""

import re
import urllib.parse
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema

from replicator.topology.plan import Mechanism, Protocol
from replicator.topology.spec.fields import Secret, Setting, Spec, complaint
from replicator.topology.spec.owned_settings import owner_reason

MAX_PORT = 65535
_MOST_IN_A_PART = 63
_PORT = re.compile("[0-9]{1,5}")


class LiteralName(Secret):
    """A user name that stands in the file itself; a user name is no secret."""

    literal: str
    """The name."""


def _server(value: str) -> str:
    host, colon, port = value.rpartition(":")
    bare_ipv6 = ":" in host and not (host.startswith("[") and host.endswith("]"))
    if any(char.isspace() or char in ",/" for char in value):
        raise complaint(f"'{value}' is not one address", "write one host:port per list entry")
    if (
        not colon
        or not host
        or bare_ipv6
        or not _PORT.fullmatch(port)
        or not 0 < int(port) <= MAX_PORT
    ):
        raise complaint(f"'{value}' is not an address", "write host:port, such as kafka-east:9092")
    parts = [] if host.startswith("[") else host.removesuffix(".").split(".")
    if not all(0 < len(part) <= _MOST_IN_A_PART for part in parts):
        raise complaint(
            f"'{host}' is not a host name",
            f"write at least one and at most {_MOST_IN_A_PART} characters between two dots",
        )
    return value


def _free_setting(name: str) -> str:
    reason = owner_reason(name)
    if reason is not None:
        raise complaint(f"'{name}' is set by the replicator: {reason}", "remove it from kafka")
    return name


def _user_name(value: object) -> object:
    if isinstance(value, str) and value:
        return LiteralName(literal=value)
    if not isinstance(value, dict):
        raise complaint(
            "a user name is a text or a reference", "write it in quotes, or {env: NAME}"
        )
    return value


_REFERENCE: dict[str, Any] = {
    "type": "object",
    "properties": {"env": {"type": "string"}, "file": {"type": "string"}},
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
}

UserName = Annotated[
    Secret,
    BeforeValidator(_user_name),
    WithJsonSchema({"anyOf": [{"type": "string", "minLength": 1}, _REFERENCE]}),
]


def _token_url(value: str) -> str:
    parts = urllib.parse.urlsplit(value)
    local = parts.hostname in {"localhost", "127.0.0.1", "::1"}
    if parts.scheme not in {"https", "http"} or not parts.hostname:
        raise complaint(f"'{value}' is not a URL", "write https://host/path")
    if parts.username or parts.password or parts.fragment:
        raise complaint(
            "a token URL holds no login and no fragment", "use clientId and clientSecret"
        )
    if parts.scheme == "http" and not local:
        raise complaint("the client secret would be sent unencrypted", "use https")
    return value


TokenUrl = Annotated[str, AfterValidator(_token_url)]
Argument = Annotated[str, StringConstraints(min_length=1)]
ExtensionName = Annotated[str, StringConstraints(pattern="^[A-Za-z]+$")]
ExtensionValue = Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]+$")]
ServerAddress = Annotated[str, AfterValidator(_server)]
SettingName = Annotated[str, AfterValidator(_free_setting)]


class OAuthSpec(Spec):
    """Where the tokens of OAUTHBEARER come from: a token URL, a file, or a command."""

    token_url: TokenUrl | None = None
    """Token endpoint of the identity provider, for the client-credentials grant."""
    client_id: UserName | None = None
    """Client id at the token endpoint: the id, or a reference."""
    client_secret: Secret | None = None
    """Client secret at the token endpoint, by reference."""
    scope: str | None = Field(default=None, min_length=1)
    """Scope to ask for."""
    ca: Secret | None = None
    """Certificates (PEM) of the authorities that may sign the token endpoint's certificate; else those of the system."""
    token_file: str | None = Field(default=None, min_length=1)
    """File with a token that another program renews, such as a projected service account token; it is read again."""
    token_command: list[Argument] | None = Field(default=None, min_length=1)
    """Program and arguments, run without a shell, that prints a token, or JSON with `access_token` and `expires_in`."""
    extensions: dict[ExtensionName, ExtensionValue] = Field(default_factory=dict)
    """SASL extensions that the brokers ask for, such as `logicalCluster`."""


class SecuritySpec(Spec):
    """How clients connect to a cluster; without it, PLAINTEXT."""

    protocol: Protocol
    """Encryption and authentication of the connection."""
    mechanism: Mechanism | None = None
    """SASL mechanism; needed with SASL_PLAINTEXT and SASL_SSL."""
    username: UserName | None = None
    """SASL user: the name, or a reference."""
    password: Secret | None = None
    """SASL password, by reference."""
    ca: Secret | None = None
    """Certificates (PEM) of the authorities that may sign the brokers' certificates."""
    certificate: Secret | None = None
    """Our certificate (PEM), for mutual TLS."""
    key: Secret | None = None
    """Private key (PEM) of our certificate."""
    key_password: Secret | None = None
    """Password of the private key."""
    oauth: OAuthSpec | None = None
    """Where tokens come from; needed with OAUTHBEARER."""
    aws_region: str | None = Field(default=None, pattern="^[a-z]{2}(-[a-z]+)+-[0-9]+$")
    """Region that AWS_MSK_IAM signs for; without it the region in the bootstrap server's name."""


class ClusterSpec(Spec):
    """One Kafka cluster."""

    bootstrap_servers: list[ServerAddress] = Field(min_length=1)
    """Addresses to begin with, host:port; the other brokers are found from there."""
    security: SecuritySpec | None = None
    """How to connect; without it, PLAINTEXT."""
    kafka: dict[SettingName, Setting] = Field(default_factory=dict)
    """librdkafka settings as they are; those the replicator must own are refused."""
