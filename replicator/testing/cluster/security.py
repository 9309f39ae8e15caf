"""How a local cluster is secured, and what that means for its brokers and for its clients.

A ``SecuritySetup`` is the request; ``ClusterSecurity`` is the same with certificates and secret
files in the cluster's directory. The set-up itself (SCRAM users, ACLs) goes through the cluster's
plaintext INTERNAL listener, whose anonymous user is a super user where there is an authorizer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from replicator.errors import InputError

if TYPE_CHECKING:
    from replicator.testing.cluster.certificates import Certificates

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
ADMIN = "admin"

_LISTENER = "listener.name.client"
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}
_ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


@dataclass(frozen=True, slots=True)
class IdentityProvider:
    """Who issues tokens: where clients ask for them, and where brokers find its public keys.

    Attributes:
        token_url: for the client-credentials grant.
        keys_url: the JSON Web Key Set.
        issuer: ``iss`` of its tokens.
        audience: ``aud`` that brokers ask for.
        reauthenticate_seconds: after which brokers ask open connections for another token; 0 is never.
    """

    token_url: str
    keys_url: str
    issuer: str
    audience: str
    reauthenticate_seconds: int = 0


@dataclass(frozen=True, slots=True)
class SecuritySetup:
    """The requested security; use ``tls``, ``mutual_tls`` or ``sasl``.

    Attributes:
        protocol: of the CLIENT listener.
        mechanism: with SASL.
        mutual: whether clients must show a certificate.
        users: name to password (SASL), or the names certificates are issued for (mutual TLS).
        authorizer: whether ACLs are enforced; without one everybody may do everything.
        super_users: not bound by ACLs.
        provider: who issues tokens (OAUTHBEARER); users are its clients with their secrets.
    """

    protocol: Protocol
    mechanism: Mechanism | None = None
    mutual: bool = False
    users: Mapping[str, str] = field(default_factory=dict)
    authorizer: bool = False
    super_users: tuple[str, ...] = (ADMIN,)
    provider: IdentityProvider | None = None

    @classmethod
    def oauth(
        cls,
        provider: IdentityProvider,
        *,
        users: Mapping[str, str],
        authorizer: bool = False,
        super_users: tuple[str, ...] = (ADMIN,),
    ) -> "SecuritySetup":
        """Clients of an identity provider, whose tokens Kafka's own validator checks."""
        return cls(
            protocol="SASL_PLAINTEXT",
            mechanism="OAUTHBEARER",
            users=dict(users),
            authorizer=authorizer,
            super_users=super_users,
            provider=provider,
        )

    @classmethod
    def tls(cls) -> "SecuritySetup":
        """Encrypted, clients verify the broker; everybody is anonymous."""
        return cls(protocol="SSL")

    @classmethod
    def mutual_tls(
        cls,
        *,
        users: tuple[str, ...] = (ADMIN, "replicator"),
        authorizer: bool = False,
        super_users: tuple[str, ...] = (ADMIN,),
    ) -> "SecuritySetup":
        """Encrypted, and a user is the common name of a certificate."""
        return cls(
            protocol="SSL",
            mutual=True,
            users=dict.fromkeys(users, ""),
            authorizer=authorizer,
            super_users=super_users,
        )

    @classmethod
    def sasl(
        cls,
        mechanism: Mechanism = "SCRAM-SHA-512",
        *,
        tls: bool = False,
        users: Mapping[str, str] | None = None,
        authorizer: bool = False,
        super_users: tuple[str, ...] = (ADMIN,),
    ) -> "SecuritySetup":
        """Users with passwords, encrypted or not."""
        return cls(
            protocol="SASL_SSL" if tls else "SASL_PLAINTEXT",
            mechanism=mechanism,
            users=dict(users or {ADMIN: "admin-secret", "replicator": "replicator-secret"}),
            authorizer=authorizer,
            super_users=super_users,
        )

    def __post_init__(self) -> None:
        if self.authorizer and not (self.mechanism or self.mutual):
            raise InputError(
                "an authorizer needs users to distinguish",
                subject="SecuritySetup",
                remedy="Ask for SASL or mutual TLS.",
            )


class ClusterSecurity:
    """A setup with its files; one per secured cluster."""

    def __init__(self, setup: SecuritySetup, directory: Path) -> None:
        self.setup = setup
        self._directory = directory
        self._passwords = dict(setup.users)
        directory.mkdir(parents=True)
        self._certificates = _certificates(directory) if setup.protocol.endswith("SSL") else None
        for user, password in setup.users.items():
            self.set_password(user, password)

    @property
    def passwords(self) -> Mapping[str, str]:
        """Every SASL user."""
        return self._passwords if self.setup.mechanism else {}

    @property
    def scram(self) -> bool:
        """Whether users live in the cluster's metadata rather than in the brokers' files."""
        return (self.setup.mechanism or "").startswith("SCRAM")

    def set_password(self, user: str, password: str) -> None:
        """Adds or changes a user in our files (for mutual TLS: issues the certificate)."""
        if self.setup.mutual and self._certificates is not None:
            self._certificates.issue_for_user(user)
            self._passwords[user] = ""
            return
        self._passwords[user] = password
        self._secret(user, "username").write_text(user)
        self._secret(user, "password").write_text(password)

    def renew_certificate(self, user: str, *, authority: int) -> None:
        """Issues another certificate for a user, by one of the two authorities (0 and 1).

        Raises:
            InputError: clients of this cluster have no certificates.
        """
        if self._certificates is None or not self.setup.mutual:
            raise InputError("clients have no certificates", remedy="Ask for mutual TLS.")
        self._certificates.issue_for_user(user, authority=authority)

    def broker_settings(self) -> dict[str, str]:
        """Settings of the CLIENT listener and of the authorizer."""
        settings: dict[str, str] = {}
        if self._certificates is not None:
            settings |= {
                f"{_LISTENER}.ssl.keystore.type": "PEM",
                f"{_LISTENER}.ssl.keystore.location": str(self._certificates.broker_chain),
                f"{_LISTENER}.ssl.truststore.type": "PEM",
                f"{_LISTENER}.ssl.truststore.location": str(self._certificates.authority),
                f"{_LISTENER}.ssl.client.auth": "required" if self.setup.mutual else "none",
                # The principal is the certificate's common name alone.
                "ssl.principal.mapping.rules": "RULE:^.*CN=([^,]+).*$/$1/",
            }
        if self.setup.mechanism is not None:
            prefix = f"{_LISTENER}.{self.setup.mechanism.lower()}"
            settings["sasl.enabled.mechanisms"] = self.setup.mechanism
            settings[f"{_LISTENER}.sasl.enabled.mechanisms"] = self.setup.mechanism
            settings[f"{prefix}.sasl.jaas.config"] = self._jaas()
            settings |= self._validator(prefix)
        if self.setup.authorizer:
            names = ("ANONYMOUS", *self.setup.super_users)
            settings["authorizer.class.name"] = (
                "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
            )
            settings["super.users"] = ";".join(f"User:{name}" for name in names)
        return settings

    def client_settings(self, user: str | None) -> dict[str, str]:
        """Settings for librdkafka of a user (default: the first one)."""
        settings: dict[str, str] = {"security.protocol": self.setup.protocol}
        if self._certificates is not None:
            settings["ssl.ca.location"] = str(self._certificates.authority)
        if self.setup.mutual and self._certificates is not None:
            name = self._user(user)
            settings["ssl.certificate.location"] = str(self._certificates.user_certificate(name))
            settings["ssl.key.location"] = str(self._certificates.user_key(name))
        if self.setup.mechanism is not None:
            name = self._user(user)
            settings["sasl.mechanism"] = self.setup.mechanism
            if self.setup.provider is not None:
                return settings | {
                    "sasl.oauthbearer.method": "oidc",
                    "sasl.oauthbearer.token.endpoint.url": self.setup.provider.token_url,
                    "sasl.oauthbearer.client.id": name,
                    "sasl.oauthbearer.client.secret": self._passwords[name],
                }
            settings["sasl.username"] = name
            settings["sasl.password"] = self._passwords[name]
        return settings

    def topology_security(self, user: str | None) -> dict[str, object]:
        """The ``security`` block of a topology file, with secrets as file references."""
        block: dict[str, object] = {"protocol": self.setup.protocol}
        if self._certificates is not None:
            block["ca"] = {"file": str(self._certificates.authority)}
        if self.setup.mutual and self._certificates is not None:
            name = self._user(user)
            block["certificate"] = {"file": str(self._certificates.user_certificate(name))}
            block["key"] = {"file": str(self._certificates.user_key(name))}
        if self.setup.mechanism is not None:
            name = self._user(user)
            block["mechanism"] = self.setup.mechanism
            if self.setup.provider is not None:
                block["oauth"] = {
                    "tokenUrl": self.setup.provider.token_url,
                    "clientId": name,
                    "clientSecret": {"file": str(self._secret(name, "password"))},
                }
                return block
            block["username"] = {"file": str(self._secret(name, "username"))}
            block["password"] = {"file": str(self._secret(name, "password"))}
        return block

    def java_properties(self) -> tuple[tuple[str, str], ...]:
        """System properties of the brokers: which URLs they may ask for keys."""
        provider = self.setup.provider
        return () if provider is None else ((_ALLOWED_URLS, provider.keys_url),)

    def _validator(self, prefix: str) -> dict[str, str]:
        provider = self.setup.provider
        if provider is None:
            return {}
        return {
            f"{prefix}.sasl.server.callback.handler.class": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
            f"{prefix}.sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
            f"{prefix}.sasl.oauthbearer.expected.issuer": provider.issuer,
            f"{prefix}.sasl.oauthbearer.expected.audience": provider.audience,
            f"{prefix}.connections.max.reauth.ms": str(provider.reauthenticate_seconds * 1000),
        }

    def _user(self, user: str | None) -> str:
        known = list(self._passwords)
        if user is None:
            return known[0]
        if user not in known:
            raise InputError(
                f"the cluster has no user '{user}'",
                subject="user",
                remedy=f"It has: {', '.join(known)}.",
            )
        return user

    def _secret(self, user: str, kind: str) -> Path:
        path = self._directory / f"{user}.{kind}"
        path.touch(mode=0o600)
        return path

    def _jaas(self) -> str:
        module = _LOGIN_MODULES[self.setup.mechanism or ""]
        if self.setup.provider is not None:
            # The module wants a claim here even where clients' tokens are checked by the validator.
            return f'{module} required unsecuredLoginStringClaim_sub="broker";'
        if self.scram:
            return f"{module} required;"
        users = " ".join(f'user_{name}="{password}"' for name, password in self._passwords.items())
        return f"{module} required {users};"


def _certificates(directory: Path) -> "Certificates":
    # It alone needs the `testing` extra; drills on real links run without it.
    from replicator.testing.cluster.certificates import Certificates

    return Certificates(directory)
