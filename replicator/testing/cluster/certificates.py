"""Throw-away certificates in PEM files that both Java brokers and librdkafka read."""

from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

_HOSTS = ("localhost", "127.0.0.1", "::1")


class Certificates:
    """One authority, one certificate for all brokers, one per user."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._authority = trustme.CA()
        self.authority = directory / "ca.pem"
        self._authority.cert_pem.write_to_path(self.authority)
        self.broker_chain = directory / "broker.pem"
        self._write_chain(
            self._authority.issue_cert(*_HOSTS, common_name="broker"), self.broker_chain
        )

    def issue_for_user(self, user: str) -> None:
        """Issues (or issues anew) a client certificate whose common name is the user."""
        issued = self._authority.issue_cert(f"{user}@replicator.test", common_name=user)
        self.user_key(user).touch(mode=0o600)
        self.user_key(user).write_bytes(_pkcs8(issued.private_key_pem.bytes()))
        self.user_certificate(user).write_bytes(
            b"".join(part.bytes() for part in issued.cert_chain_pems)
        )

    def user_certificate(self, user: str) -> Path:
        """Certificate chain of a user."""
        return self._directory / f"{user}.certificate.pem"

    def user_key(self, user: str) -> Path:
        """Private key of a user."""
        return self._directory / f"{user}.key.pem"

    @staticmethod
    def _write_chain(issued: trustme.LeafCert, path: Path) -> None:
        path.touch(mode=0o600)
        chain = b"".join(part.bytes() for part in issued.cert_chain_pems)
        path.write_bytes(_pkcs8(issued.private_key_pem.bytes()) + chain)


def _pkcs8(key_pem: bytes) -> bytes:
    """Java reads private keys in PKCS#8 only; trustme writes the older form."""
    key = load_pem_private_key(key_pem, password=None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
