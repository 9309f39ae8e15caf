"""Keeps secrets out of logs: by field name, by shape, and by exact value.

Everything a log line carries passes through ``redact``. What is not plain data is turned into text
first, so that no object's ``repr`` can bring a secret in behind it. Pure but for the register of
values, which only grows.
"""

import json
import re
import threading
import urllib.parse
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

PLACEHOLDER = "[redacted]"

_SECRET_KEY = re.compile(
    r"passw(or)?d|passphrase|secret|token|credential|authorization|key[^a-z]*pem|private[^a-z]*key"
    r"|jaas",
    re.IGNORECASE,
)
_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\Z)", re.DOTALL | re.IGNORECASE
)
_ASSIGNED = re.compile(
    r"""(?ix)
    (?P<name> [\w.-]* (?:password|passphrase|secret|token|jaas\.config) )
    (?P<join> ["']? \s* = \s* )
    (?P<value> "[^"]*" | '[^']*' | [^\s,;&]+ )
    | (?P<scheme> \b (?:bearer|authorization: \s* basic) \s+ ) [\w.~+/=-]{16,}
    """
)


class Redactor:
    """Redacts by rule and by registered value. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forms: set[str] = set()
        self._values: re.Pattern[str] | None = None

    def register(self, value: str) -> None:
        """From now on this exact value, also escaped as text or in a URL, is redacted."""
        if not value.strip():
            return
        forms = {
            value,
            value.strip(),
            repr(value)[1:-1],
            json.dumps(value)[1:-1],
            json.dumps(value, ensure_ascii=False)[1:-1],
            urllib.parse.quote(value, safe=""),
            urllib.parse.quote_plus(value),
        } - {""}
        with self._lock:
            if forms <= self._forms:
                return
            self._forms |= forms
            # The longest first: a secret that contains another one goes as a whole.
            longest_first = sorted(self._forms, key=lambda form: (-len(form), form))
            self._values = re.compile("|".join(re.escape(form) for form in longest_first))

    def text(self, text: str) -> str:
        """The text without PEM blocks, assignments to secret names, and registered values."""
        if self._values is not None:
            text = self._values.sub(PLACEHOLDER, text)
        if "-----BEGIN" in text.upper():
            text = _PEM.sub(PLACEHOLDER, text)
        return _ASSIGNED.sub(_keep_name, text)

    def value(self, value: object) -> object:
        """Plain data with every text redacted; anything else as redacted text."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int | float):
            # A registered secret may be digits only.
            text = str(value)
            return value if self.text(text) == text else PLACEHOLDER
        if isinstance(value, Mapping):
            return self.fields(value)
        if isinstance(value, bytes | bytearray):
            return self.text(bytes(value).decode(errors="backslashreplace"))
        if isinstance(value, Sequence | AbstractSet):
            return [self.value(item) for item in value]
        return self.text(str(value) if isinstance(value, BaseException) else repr(value))

    def fields(self, fields: Mapping[Any, Any]) -> dict[str, Any]:
        """The mapping with secret-named fields replaced whole and the others redacted."""
        return {
            self.text(str(name)): (
                PLACEHOLDER if is_secret_name(str(name)) and item is not None else self.value(item)
            )
            for name, item in fields.items()
        }


def is_secret_name(name: str) -> bool:
    """Whether a field of this name is taken to hold a secret whatever its value."""
    return _SECRET_KEY.search(name) is not None


def _keep_name(match: re.Match[str]) -> str:
    if match["scheme"]:
        return f"{match['scheme']}{PLACEHOLDER}"
    return f"{match['name']}{match['join']}{PLACEHOLDER}"


_REDACTOR = Redactor()


def register_secret(value: str) -> None:
    """Registers a secret's exact value with the process's redactor; call it where one is read."""
    _REDACTOR.register(value)


def redact_text(text: str) -> str:
    """Redacts text with the process's redactor, for output that is not a log line."""
    return _REDACTOR.text(text)


def redact_fields(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """Redacts a mapping with the process's redactor."""
    return _REDACTOR.fields(fields)
