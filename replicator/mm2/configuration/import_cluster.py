"""One cluster of a properties file as ``spec.clusters.ALIAS``: addresses, logins, client settings. Pure.

Secrets never come along. A password becomes a reference to an environment variable, a Java key store
a reference to a PEM file, and the verdict says how to put it there.
"""

import re
from collections.abc import Iterator
from typing import Any, get_args

from replicator.mm2.configuration.import_tokens import TOKEN_MECHANISMS, TokenImport
from replicator.mm2.properties.java_properties import Entry
from replicator.mm2.properties.scopes import Settings
from replicator.mm2.properties.security_values import PLACEHOLDER, jaas_value, secret_variable
from replicator.mm2.properties.verdicts import VerdictSheet
from replicator.topology.plan import Mechanism, Protocol

CLIENTS = ("admin.", "consumer.", "producer.")
CLIENT_SETTINGS = {
    "client.dns.lookup": "client.dns.lookup",
    "client.rack": "client.rack",
    "compression.type": "compression.type",
    "connections.max.idle.ms": "connections.max.idle.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
"""Settings of Java clients that make sense here, by their names in librdkafka."""

_ADDRESS = re.compile(r"(?:[0-9a-zA-Z.%_-]*://)?(\[?[0-9a-zA-Z.:%_-]+\]?:[0-9]{1,5})")
_DIRECTORY = "/etc/replicator"


class ClusterImport:
    """Makes the spec of one cluster and notes on the sheet what became of its keys."""

    def __init__(self, settings: Settings, name: str, alias: str, sheet: VerdictSheet) -> None:
        """``name`` is MirrorMaker 2's alias, ``alias`` the one here."""
        self._settings = settings
        self._name = name
        self._alias = alias
        self._sheet = sheet
        self._path = f"spec.clusters.{alias}"

    def spec(self) -> dict[str, Any]:
        """What stands under ``spec.clusters.ALIAS``."""
        spec: dict[str, Any] = {"bootstrapServers": self._servers()}
        security = self._security()
        if security:
            spec["security"] = security
        kafka = dict(self._client_settings())
        if str(security.get("protocol", "")).endswith("SSL"):
            kafka |= self._host_name_check()
        if kafka:
            spec["kafka"] = kafka
        return spec

    def _candidates(self, key: str) -> list[Entry]:
        """Entries that may say it, the one that counts first."""
        names = (f"{self._name}.{key}", key, *(f"{self._name}.{each}{key}" for each in CLIENTS))
        found = (self._settings.everywhere(name) for name in names)
        return [entry for entry in found if entry is not None]

    def _find(self, key: str) -> Entry | None:
        candidates = self._candidates(key)
        for other in candidates[1:]:
            if other.key == key:
                continue  # for every cluster without its own
            if other.value.strip() == candidates[0].value.strip():
                self._sheet.needless(other, f"line {candidates[0].line} says the same")
            else:
                why = f"a cluster has one login for all clients; line {candidates[0].line} counts"
                self._sheet.unsupported(other, why)
        return candidates[0] if candidates else None

    def _servers(self) -> list[str]:
        entry = self._settings.of_cluster(self._name, "bootstrap.servers")
        placeholder = [f"{self._alias}.example.com:9092"]
        if entry is None:
            return placeholder
        found: list[str] = []
        for part in filter(None, (text.strip() for text in entry.value.split(","))):
            match = _ADDRESS.fullmatch(part)
            if match is None or not 0 < int(match[1].rpartition(":")[2]) <= 65535:
                why = "it holds something that is no host:port; put the addresses there yourself"
                self._sheet.unsupported(entry, why)
            else:
                found.append(match[1])
        if found:
            self._sheet.mapped(entry, f"{self._path}.bootstrapServers")
        return list(dict.fromkeys(found)) or placeholder

    def _security(self) -> dict[str, Any]:
        entry = self._find("security.protocol")
        protocol = entry.value.strip().upper() if entry is not None else "PLAINTEXT"
        if entry is not None and protocol not in get_args(Protocol):
            self._sheet.unsupported(entry, "it is none of Kafka's protocols")
            return {}
        if entry is not None:
            self._sheet.mapped(entry, f"{self._path}.security.protocol")
        elif protocol == "PLAINTEXT":
            return {}
        security: dict[str, Any] = {"protocol": protocol}
        if protocol.startswith("SASL"):
            security |= self._sasl()
        if protocol.endswith("SSL"):
            security |= self._tls()
        return security

    def _sasl(self) -> dict[str, Any]:
        entry, jaas = self._find("sasl.mechanism"), self._find("sasl.jaas.config")
        mechanism = entry.value.strip().upper() if entry is not None else "GSSAPI"
        if mechanism not in get_args(Mechanism):
            why = f"{mechanism} is not supported; SCRAM-SHA-512 stands in its place, set what fits"
            for one in (entry, jaas):
                if one is not None:
                    self._sheet.unsupported(one, why)
            mechanism, jaas = "SCRAM-SHA-512", None
        elif entry is not None:
            self._sheet.mapped(entry, f"{self._path}.security.mechanism")
        if mechanism in TOKEN_MECHANISMS:
            return TokenImport(self._find, self._alias, self._sheet).fields(mechanism)
        user = None if jaas is None else jaas_value(jaas.value, "username")
        password = secret_variable(self._alias, "PASSWORD")
        variable = secret_variable(self._alias, "USERNAME")
        known = bool(user) and PLACEHOLDER not in (user or "")
        username = user if known else {"env": variable}
        if jaas is not None:
            self._sheet.mapped(jaas, f"{self._path}.security.username")
            self._sheet.mapped(
                jaas,
                f"{self._path}.security.password",
                f"the password stays out of the file: put what follows 'password=' in line "
                f"{jaas.line} into the environment variable {password}, or into a file and refer "
                f"to it as {{file: PATH}}"
                + ("" if known else f"; the user name goes into {variable}"),
            )
        return {"mechanism": mechanism, "username": username, "password": {"env": password}}

    def _tls(self) -> dict[str, Any]:
        security: dict[str, Any] = {}
        trust = self._store("truststore", "ca", "ca.pem", "keytool -list -rfc -keystore {} > {}")
        if trust is not None:
            security["ca"] = trust
        inline = self._find("ssl.truststore.certificates")
        if inline is not None and trust is None:
            security["ca"] = self._inline(inline, "ca", "CA")
        security |= self._own_certificate()
        return security

    def _own_certificate(self) -> dict[str, Any]:
        certificate = self._store(
            "keystore", "certificate", "tls.crt",
            "openssl pkcs12 -nokeys -in {} -out {} (a JKS: keytool -importkeystore first)",
        )  # fmt: skip
        security: dict[str, Any] = {}
        location = self._find("ssl.keystore.location")
        if certificate is not None and location is not None:
            pem = self._is_pem("keystore")
            key = certificate["file"] if pem else f"{_DIRECTORY}/{self._alias}/tls.key"
            note = "" if pem else f"openssl pkcs12 -nocerts -nodes -in KEYSTORE -out {key}"
            self._sheet.mapped(location, f"{self._path}.security.key", note)
            security = {"certificate": certificate, "key": {"file": key}}
        chain, key_text = (
            self._find("ssl.keystore.certificate.chain"),
            self._find("ssl.keystore.key"),
        )
        if certificate is None and chain is not None and key_text is not None:
            security = {
                "certificate": self._inline(chain, "certificate", "CERTIFICATE"),
                "key": self._inline(key_text, "key", "KEY"),
            }
        password = self._find("ssl.key.password")
        if password is not None and security:
            if location is not None and not self._is_pem("keystore"):
                self._sheet.needless(password, "the key is exported without a password, see above")
            else:
                security["keyPassword"] = self._inline(password, "keyPassword", "KEY_PASSWORD")
        return security

    def _is_pem(self, store: str) -> bool:
        kind = self._find(f"ssl.{store}.type")
        return kind is not None and kind.value.strip().upper() == "PEM"

    def _store(self, store: str, field: str, file: str, how: str) -> dict[str, str] | None:
        entry = self._find(f"ssl.{store}.location")
        if entry is None:
            return None
        location = entry.value.strip()
        if self._is_pem(store):
            self._sheet.mapped(entry, f"{self._path}.security.{field}")
            return {"file": location or f"{_DIRECTORY}/{self._alias}/{file}"}
        path = f"{_DIRECTORY}/{self._alias}/{file}"
        note = f"Java's key store has to become PEM: {how.format(location, path)}"
        self._sheet.mapped(entry, f"{self._path}.security.{field}", note)
        return {"file": path}

    def _inline(self, entry: Entry, field: str, kind: str) -> dict[str, str]:
        """A secret that stood in the file itself."""
        variable = secret_variable(self._alias, kind)
        note = f"it stays out of the file: put it into the environment variable {variable}"
        self._sheet.mapped(entry, f"{self._path}.security.{field}", note)
        return {"env": variable}

    def _client_settings(self) -> Iterator[tuple[str, str]]:
        """Librdkafka settings; of several values for one the first in the file counts."""
        taken: dict[str, Entry] = {}
        for entry in self._settings.entries:
            scoped = self._settings.scoped(entry)
            if scoped.scope != "cluster" or scoped.owner != self._name:
                continue
            base = next(
                (scoped.name.removeprefix(p) for p in CLIENTS if scoped.name.startswith(p)),
                scoped.name,
            )
            setting = CLIENT_SETTINGS.get(base)
            value = entry.value.strip()
            if setting is None or self._settings.everywhere(entry.key) is not entry:
                continue
            if value in {"", "-1"}:
                self._sheet.needless(entry, "the default is used")
            elif PLACEHOLDER in value:
                self._sheet.unsupported(entry, "put the value itself into the topology")
            elif setting in taken and taken[setting].value.strip() != value:
                why = f"a cluster has one value for all clients; line {taken[setting].line} counts"
                self._sheet.unsupported(entry, why)
            else:
                taken.setdefault(setting, entry)
                self._sheet.mapped(entry, f'{self._path}.kafka["{setting}"]')
                yield setting, value

    def _host_name_check(self) -> dict[str, str]:
        name = "ssl.endpoint.identification.algorithm"
        entry = self._find(name)
        if entry is None:
            return {}
        if entry.value.strip():
            self._sheet.needless(entry, "host names are checked by default")
            return {}
        self._sheet.mapped(entry, f'{self._path}.kafka["{name}"]', "host names stay unchecked")
        return {name: "none"}
