"""The certificate of the HTTP server: read again when its files change, without a restart."""

import ssl
from pathlib import Path

from replicator.errors import InputError
from replicator.observability.logging import get_logger
from replicator.watched_file import WatchedFile

_LOG = get_logger("api")


class ServerCertificate:
    """Certificate chain and private key (PEM) behind one TLS context.

    ``context`` serves every new connection. While the files hold nothing that can be used, the pair that
    was read last stays in force, and the log says why.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        """Reads them once.

        Raises:
            InputError: they cannot be read, or do not belong together.
        """
        self._certificate = certificate
        self._key = key
        self._files = (WatchedFile(certificate), WatchedFile(key))
        self._problem = ""
        self.context = _context(certificate, key)

    def problem(self) -> str:
        """Why the files cannot be used now; empty when they can."""
        self.refresh()
        return self._problem

    def refresh(self) -> None:
        """Takes a new pair over once both files hold it; called every few seconds."""
        changed = [file.changed() for file in self._files]
        if not any(changed) and not self._problem:
            return
        try:
            _context(
                self._certificate, self._key
            )  # tried apart: a failure would spoil the one in use
        except InputError as error:
            if error.message != self._problem:
                self._problem = error.message
                _LOG.error(
                    "the new certificate cannot be used, the one before stays in force",
                    problem=error.message, remedy=error.remedy,
                )  # fmt: skip
            return
        self._problem = ""
        self.context.load_cert_chain(self._certificate, self._key)
        _LOG.info("certificate of the HTTP server was read again", file=str(self._certificate))


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", "") or getattr(error, "strerror", "") or str(error)
        raise InputError(
            f"certificate and key of the HTTP server cannot be used ({reason})",
            subject=f"--http-tls-certificate {certificate}",
            remedy="Give a PEM chain, and its private key without a passphrase as --http-tls-key.",
        ) from error
    return context
