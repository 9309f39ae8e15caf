"""When certificates end, read from their DER encoding (RFC 5280, section 4.1). Pure."""

import base64
import re
from collections.abc import Iterator
from datetime import UTC, datetime

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)
_VERSION, _UTC_TIME, _GENERALIZED_TIME = 0xA0, 0x17, 0x18


def ends_of_certificates(pem: str) -> list[float]:
    """Seconds since 1970 at which each certificate of the text ends, in their order.

    Raises:
        ValueError: one of them is not encoded as a certificate is.
    """
    try:
        return [_end(base64.b64decode("".join(body.split()))) for body in _PEM.findall(pem)]
    except IndexError:
        raise ValueError("a certificate is cut off") from None


def _end(der: bytes) -> float:
    certificate = next(_elements(der))[1]
    fields = _elements(next(_elements(certificate))[1])
    tag, _ = next(fields)
    if tag == _VERSION:
        next(fields)
    for _ in range(2):  # after the serial number: signature algorithm and issuer
        next(fields)
    _, validity = next(fields)
    tag, text = list(_elements(validity))[1]
    if tag not in {_UTC_TIME, _GENERALIZED_TIME}:
        raise ValueError("a certificate without an end")
    digits = text.decode("ascii").rstrip("Z")
    if tag == _UTC_TIME:
        digits = ("19" if digits >= "50" else "20") + digits
    return datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each element, one after the other."""
    at = 0
    while at < len(der):
        tag, size, at = der[at], der[at + 1], at + 2
        if size & 0x80:
            count = size & 0x7F
            size, at = int.from_bytes(der[at : at + count], "big"), at + count
        if at + size > len(der):
            raise IndexError
        yield tag, der[at : at + size]
        at += size
