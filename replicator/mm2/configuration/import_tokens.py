"""Logins with tokens in a properties file: OAUTHBEARER of Kafka and of Strimzi, and AWS IAM. Pure.

Where tokens came from stands in the JAAS text, in settings, or in a Java class. Client ids and URLs are
taken over; a client secret becomes a reference, as every secret does.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from replicator.mm2.properties.java_properties import Entry
from replicator.mm2.properties.security_values import PLACEHOLDER, jaas_value, secret_variable
from replicator.mm2.properties.verdicts import VerdictSheet

TOKEN_MECHANISMS = ("OAUTHBEARER", "AWS_MSK_IAM")

_FILE_URL = "file:"
"""Where a URL begins from which Kafka's client reads a token out of a file."""

_URL = "sasl.oauthbearer.token.endpoint.url"
_PREFIX = "sasl.oauthbearer.client.credentials."
_HANDLERS = ("sasl.login.callback.handler.class", "sasl.client.callback.handler.class")
_KNOWN_HANDLERS = (
    "org.apache.kafka.common.security.oauthbearer.",
    "io.strimzi.kafka.oauth.client.",
    "software.amazon.msk.auth.iam.",
)
_JAAS = {
    "clientId": ("clientId", "oauth.client.id"),
    "clientSecret": ("clientSecret", "oauth.client.secret"),
    "scope": ("scope", "oauth.scope"),
    "tokenUrl": ("oauth.token.endpoint.uri",),
    "tokenFile": ("oauth.access.token.location",),
}
_SETTINGS = {
    "clientId": f"{_PREFIX}client.id",
    "clientSecret": f"{_PREFIX}client.secret",
    "scope": "sasl.oauthbearer.scope",
    "tokenUrl": _URL,
}
_QUOTED = re.compile(r"""\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'""")
_EXTENSION = "extension_"
_OF_AWS = "software.amazon.msk.auth.iam."
_ROLE, _PROFILE = "awsRoleArn", "awsProfileName"
_HARMLESS = ("oauth.refresh.token.expiry", "oauth.access.token.is.jwt", "unsecuredLogin")
"""What brokers check, or what tells the Java client how a token looks: nothing is lost without it."""

Find = Callable[[str], Entry | None]
"""The entry of a cluster that counts for a key."""


class TokenImport:
    """Makes what stands under ``security`` for a mechanism with tokens, and says what became of its keys."""

    def __init__(self, find: Find, alias: str, sheet: VerdictSheet) -> None:
        self._find = find
        self._alias = alias
        self._sheet = sheet
        self._path = f"spec.clusters.{alias}.security"

    def fields(self, mechanism: str) -> dict[str, Any]:
        """``mechanism`` and what goes with it."""
        jaas = self._find("sasl.jaas.config")
        handlers = [each for each in map(self._find, _HANDLERS) if each is not None]
        for handler in handlers:
            if handler.value.strip().startswith(_KNOWN_HANDLERS):
                self._sheet.needless(handler, "tokens are fetched without a Java class")
        signed = [each for each in handlers if each.value.strip().startswith(_OF_AWS)]
        if signed and mechanism != "AWS_MSK_IAM":
            # AWS's other way: the same signed token under Kafka's own mechanism.
            self._sheet.mapped(signed[0], f"{self._path}.mechanism")
        if signed or mechanism == "AWS_MSK_IAM":
            self._aws(jaas)
            return {"mechanism": "AWS_MSK_IAM"}
        return {"mechanism": mechanism, "oauth": self._oauth(jaas)}

    def _aws(self, jaas: Entry | None) -> None:
        if jaas is None:
            return
        if jaas_value(jaas.value, _ROLE):
            why = (
                "the worker's own AWS role is used: give it the rights of this role, or set role_arn in a "
                "profile of AWS and AWS_PROFILE in its environment"
            )
            self._sheet.unsupported(jaas, why)
        elif jaas_value(jaas.value, _PROFILE):
            why = "the worker's own AWS role is used; set AWS_PROFILE in its environment for a profile"
            self._sheet.unsupported(jaas, why)
        else:
            self._sheet.mapped(jaas, f"{self._path}.mechanism", "install replicator with extra aws")

    def _oauth(self, jaas: Entry | None) -> dict[str, Any]:
        oauth: dict[str, Any] = {}
        token = self._find(_URL)
        if token is not None and token.value.strip().startswith(_FILE_URL):
            self._sheet.mapped(token, f"{self._path}.oauth.tokenFile")
            self._left_out(jaas)
            return {"tokenFile": "/" + token.value.strip().removeprefix(_FILE_URL).lstrip("/")}
        for field in ("tokenUrl", "clientId", "clientSecret", "scope", "tokenFile"):
            found = self._value(field, jaas)
            if found is None:
                continue
            entry, value = found
            if field == "clientSecret":
                variable = secret_variable(self._alias, "CLIENT_SECRET")
                oauth[field] = {"env": variable}
                note = (
                    "the client secret stays out of the file: put it into the environment variable "
                    f"{variable}, or into a file and refer to it as {{file: PATH}}"
                )
                self._sheet.mapped(entry, f"{self._path}.oauth.{field}", note)
            elif PLACEHOLDER in value:
                self._sheet.unsupported(entry, f"put {field} itself into the topology")
            else:
                oauth[field] = value
                self._sheet.mapped(entry, f"{self._path}.oauth.{field}")
        if "tokenFile" in oauth:
            oauth = {"tokenFile": oauth["tokenFile"]}
        elif not {"tokenUrl", "clientId", "clientSecret"} <= oauth.keys():
            oauth = self._completed(oauth)
        extensions = {} if jaas is None else dict(self._extensions(jaas))
        if jaas is not None and extensions:
            oauth["extensions"] = extensions
            self._sheet.mapped(jaas, f"{self._path}.oauth.extensions")
        self._left_out(jaas)
        return oauth

    def _left_out(self, jaas: Entry | None) -> None:
        """Names the options of the login module that went nowhere, without their values."""
        if jaas is None:
            return
        options = re.findall(r"([\w.]+)\s*=", _QUOTED.sub('""', jaas.value))
        known = {option for names in _JAAS.values() for option in names}
        left = [
            option
            for option in dict.fromkeys(options)
            if option not in known and not option.startswith((_EXTENSION, *_HARMLESS))
        ]
        if left:
            why = f"not taken over, compare with security.oauth: {', '.join(left)}"
            self._sheet.unsupported(jaas, why)
        elif not self._sheet.is_mapped(jaas):
            self._sheet.needless(jaas, "its login module is Java")

    def _completed(self, oauth: dict[str, Any]) -> dict[str, Any]:
        """What was not found stands there to be corrected, and the mechanism's verdict says so."""
        mechanism = self._find("sasl.mechanism")
        if mechanism is not None:
            note = "the source of tokens is incomplete: correct security.oauth"
            self._sheet.mapped(mechanism, f"{self._path}.mechanism", note)
        return {
            "tokenUrl": "https://idp.example.com/token",
            "clientId": {"env": secret_variable(self._alias, "CLIENT_ID")},
            "clientSecret": {"env": secret_variable(self._alias, "CLIENT_SECRET")},
        } | oauth

    def _value(self, field: str, jaas: Entry | None) -> tuple[Entry, str] | None:
        setting = self._find(_SETTINGS[field]) if field in _SETTINGS else None
        if setting is not None:
            return setting, setting.value.strip()
        if jaas is not None:
            for option in _JAAS[field]:
                value = jaas_value(jaas.value, option)
                if value:
                    return jaas, value
        return None

    @staticmethod
    def _extensions(jaas: Entry) -> Iterator[tuple[str, str]]:
        for word in jaas.value.replace(";", " ").split():
            name, equals, _ = word.partition("=")
            if equals and name.startswith(_EXTENSION):
                value = jaas_value(jaas.value, name)
                if value:
                    yield name.removeprefix(_EXTENSION), value
