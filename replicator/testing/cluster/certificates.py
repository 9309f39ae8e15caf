"""Throw-away certificates in PEM files that both Java brokers and librdkafka read."""

import uuid
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
    """Two authorities that everybody trusts, one certificate for all brokers, one per user."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._authorities = (trustme.CA(), trustme.CA())
        self.authority = directory / "ca.pem"
        for number, each in enumerate(self._authorities):
            each.cert_pem.write_to_path(self.authority, append=number > 0)
            each.cert_pem.write_to_path(self.authority_alone(number))
        self.broker_chain = directory / "broker.pem"
        self._write_chain(
            self._authorities[0].issue_cert(*_HOSTS, common_name="broker"), self.broker_chain
        )

    def authority_alone(self, number: int) -> Path:
        """One authority's certificate, for brokers that stop trusting the other."""
        return self._directory / f"ca-{number}.pem"

    def issue_for_user(self, user: str, *, authority: int = 0) -> None:
        """Issues (or issues anew) a client certificate whose common name is the user.

        Certificate and key change in one step, as kubelet does it: behind a symlink that is swapped.
        """
        issuer = self._authorities[authority]
        issued = issuer.issue_cert(f"{user}@replicator.test", common_name=user)
        mounted = self._directory / f"{user}.tls"
        fresh = mounted / f"..{uuid.uuid4().hex}"
        fresh.mkdir(parents=True)
        key, certificate = self.user_key(user), self.user_certificate(user)
        (fresh / key.name).touch(mode=0o600)
        (fresh / key.name).write_bytes(_pkcs8(issued.private_key_pem.bytes()))
        (fresh / certificate.name).write_bytes(
            b"".join(part.bytes() for part in issued.cert_chain_pems)
        )
        for path in (key, certificate):
            if not path.is_symlink():
                path.symlink_to(Path("..data", path.name))
        link = mounted / "..data_new"
        link.symlink_to(fresh.name)
        link.replace(mounted / "..data")

    def user_certificate(self, user: str) -> Path:
        """Certificate chain of a user."""
        return self._directory / f"{user}.tls" / "tls.crt"

    def user_key(self, user: str) -> Path:
        """Private key of a user."""
        return self._directory / f"{user}.tls" / "tls.key"

    @staticmethod
    def _write_chain(issued: trustme.LeafCert, path: Path) -> None:
        path.touch(mode=0o600)
        chain = b"".join(part.bytes() for part in issued.cert_chain_pems)
        path.write_bytes(_pkcs8(issued.private_key_pem.bytes()) + chain)


def _pkcs8(key_pem: bytes) -> bytes:
    """Java reads private keys in PKCS#8 only; trustme writes the older form."""
    key = load_pem_private_key(key_pem, password=None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
