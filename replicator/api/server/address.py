"""Where the HTTP server listens: reading ``--http``, and getting hold of the port."""

import errno
import socket
from dataclasses import dataclass

from replicator.errors import InputError

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8080
# How far a busy default port moves on before the system chooses one.
_TRIES = 50


@dataclass(frozen=True, slots=True)
class HttpAddress:
    """Host and port; ``asked`` when a person chose them. Port 0 is any free one."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    asked: bool = False


@dataclass(frozen=True, slots=True)
class BoundPort:
    """A listening socket; ``notice`` says that the default port was busy, else it is empty.

    ``scheme`` is what clients speak there, ``http`` or ``https``.
    """

    listener: socket.socket
    host: str
    port: int
    notice: str
    scheme: str = "http"

    @property
    def url(self) -> str:
        """Where a person on this machine opens it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)  # noqa: S104
        return f"{self.scheme}://{f'[{host}]' if ':' in host and '[' not in host else host}:{self.port}"


def parse_http_address(text: str | None) -> HttpAddress:
    """Reads ``HOST:PORT``, ``[IPv6]:PORT``, ``:PORT`` (all addresses) or ``PORT`` (loopback).

    Raises:
        InputError: when the text is none of these.
    """
    if text is None:
        return HttpAddress()
    host, colon, port_text = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise _wrong(text)
    if not (port_text.isascii() and port_text.isdigit() and int(port_text) <= 65535):
        raise _wrong(text)
    everywhere = "0.0.0.0"  # noqa: S104 - only when the operator writes ':PORT'
    return HttpAddress(
        host=host or (everywhere if colon else DEFAULT_HOST), port=int(port_text), asked=True
    )


def bind(address: HttpAddress) -> BoundPort:
    """Listens at the address; a busy default port moves on to the next free one.

    Raises:
        InputError: when the address was asked for and is busy, or cannot be used at all.
    """
    if address.asked:
        return _listen(address, address.port, notice="")
    for port in range(address.port, address.port + _TRIES):
        notice = "" if port == address.port else _moved(address.port, port)
        try:
            return _listen(address, port, notice=notice)
        except _PortBusyError:
            continue
    bound = _listen(address, 0, notice="")
    return BoundPort(bound.listener, bound.host, bound.port, _moved(address.port, bound.port))


class _PortBusyError(InputError):
    """The port is taken by somebody else."""


def _listen(address: HttpAddress, port: int, *, notice: str) -> BoundPort:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listener = socket.create_server((address.host, port), family=family, backlog=128)
    except OSError as error:
        subject = f"--http {address.host}:{port}"
        if error.errno == errno.EADDRINUSE:
            raise _PortBusyError(
                f"port {port} is in use",
                subject=subject,
                remedy="Stop what listens there, or give another port; port 0 takes any free one.",
            ) from error
        reason = error.strerror or str(error)
        raise InputError(
            f"cannot listen there ({reason})",
            subject=subject,
            remedy="Give an address of this machine and a port this user may open.",
        ) from error
    listener.setblocking(False)
    return BoundPort(listener, address.host, listener.getsockname()[1], notice)


def _moved(busy: int, port: int) -> str:
    return f"port {busy} is in use, so the console and API are on port {port}"


def _wrong(text: str) -> InputError:
    return InputError(
        f"'{text}' is not an address to listen at",
        subject="--http",
        remedy="Write HOST:PORT, for example 127.0.0.1:8080 or 0.0.0.0:8080.",
    )
