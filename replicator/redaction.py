"""Keeps secrets out of everything that is shown: by exact value, by shape, and by field name.

A secret's value is registered where it is read (``topology.secrets``), in every process that reads
it. From then on errors lose it when they are made, and log lines, command output, HTTP answers and
reports lose it when they are written. Pure but for that register, which is bounded. The time that
anything here takes is linear in the length of the text.
"""

import html
import json
import re
import sys
import threading
import traceback
import urllib.parse
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import TracebackType
from typing import Any

PLACEHOLDER = "[redacted]"

SHORTEST = 4
"""Characters. A shorter value is part of too many words: it is redacted by field name only."""

MOST_VALUES = 512
"""Registered values that are kept; the one that was read longest ago goes first."""

_SHORTEST_LINE = 16
"""Characters of a line of a longer secret (a PEM key) that is redacted where it stands alone."""

_SECRET_KEY = re.compile(
    r"passw(or)?d|passphrase|secret|token|credential|authorization|key[^a-z]*pem|private[^a-z]*key"
    r"|jaas",
    re.IGNORECASE,
)
_SECRET_SETTINGS = (
    "password",
    "passphrase",
    "secret",
    "secret.key",
    "jaas.config",
    "keystore.key",
    "key.pem",
)
_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\Z)", re.DOTALL | re.IGNORECASE
)
# Begins with the word itself: a run of letters before it would be tried from each of them again.
_ASSIGNED = re.compile(
    r"""(?ix)
    (?P<kept>
        (?: password | passphrase | secret | token | jaas\.config ) ["']? \s*+ = \s*+
        (?= [^\s,;&] )
    )
    (?: "[^"]*+" | '[^']*+' | [^\s,;&]++ )
    | (?P<scheme> \b (?:bearer|authorization: \s*+ basic) \s++ ) [\w.~+/=-]{16,}+
    """
)


_NONE: frozenset[str] = frozenset()


class Redactor:
    """Redacts by rule and by registered value. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, frozenset[str]] = {}
        self._forms: tuple[str, ...] = ()

    def register(self, value: str) -> None:
        """From now on this exact value, also escaped as text, HTML or in a URL, is redacted."""
        lines = [line for line in value.splitlines() if len(line.strip()) >= _SHORTEST_LINE]
        wanted = [value, *(line for line in lines if not line.startswith("-----"))]
        with self._lock:
            known = len(self._values)
            for one in dict.fromkeys(wanted):
                if len(one.strip()) >= SHORTEST and one.strip() not in PLACEHOLDER:
                    self._values[one] = self._values.pop(one, _NONE) or _forms(one)
            if len(self._values) == known:
                return
            for oldest in list(self._values)[:-MOST_VALUES]:
                del self._values[oldest]
            # The longest first: a secret that contains another one goes as a whole.
            forms = frozenset().union(*self._values.values())
            self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))

    def forget(self, value: str) -> None:
        """From now on this value may be shown: a token that has expired, in favour of newer ones."""
        with self._lock:
            self._values.pop(value, None)

    def known(self, text: str) -> str:
        """The text without registered values."""
        # Few texts hold any: to look for each one is faster than one expression of them all.
        found = [form for form in self._forms if form in text]
        if not found:
            return text
        return re.sub("|".join(map(re.escape, found)), PLACEHOLDER, text)

    def text(self, text: str) -> str:
        """The text without registered values, PEM blocks, and assignments to secret names."""
        text = self.known(text)
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
            return value if self.known(text) == text else PLACEHOLDER
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

    def answer(self, value: Any) -> Any:  # noqa: ANN401  whatever JSON holds, and the same again
        """Plain data of a contract without registered values: names and numbers stay as they are."""
        if not self._forms:
            return value
        if isinstance(value, str):
            return self.known(value)
        if isinstance(value, Mapping):
            return {name: self.answer(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.answer(item) for item in value]
        return value


def is_secret_name(name: str) -> bool:
    """Whether a field of this name is taken to hold a secret whatever its value."""
    return _SECRET_KEY.search(name) is not None


def is_secret_setting(name: str) -> bool:
    """Whether a setting of a Kafka client or of Spark is a secret, or holds one, by its name."""
    return name.lower().endswith(_SECRET_SETTINGS)


def _forms(value: str) -> frozenset[str]:
    """How a value may stand in a text."""
    return frozenset(
        {
            value,
            value.strip(),
            repr(value)[1:-1],
            json.dumps(value)[1:-1],
            json.dumps(value, ensure_ascii=False)[1:-1],
            html.escape(value),
            html.escape(value, quote=False).replace("'", "&#39;").replace('"', "&#34;"),  # Jinja's
            urllib.parse.quote(value, safe="", errors="replace"),
            urllib.parse.quote_plus(value, errors="replace"),
        }
    )


def _keep_name(match: re.Match[str]) -> str:
    return f"{match['scheme'] or match['kept']}{PLACEHOLDER}"


_REDACTOR = Redactor()

register_secret = _REDACTOR.register
"""Registers a secret's exact value with the process's redactor; call it where one is read."""

forget_secret = _REDACTOR.forget
"""Takes a value that is of no use any more out of the process's redactor, which is bounded."""

redact_known = _REDACTOR.known
"""Text without the values that this process registered, otherwise as it is."""

redact_text = _REDACTOR.text
"""Text without secrets by value and by shape, for what is shown but is no log line."""

redact_fields = _REDACTOR.fields
"""A mapping without secrets by value, by shape and by field name."""

redact_answer = _REDACTOR.answer
"""Plain data that a command or the API gives away, without the values that were registered."""


def redact_tracebacks() -> None:
    """Has exceptions that nothing catches, in any thread of this process, written without secrets."""

    def write(
        kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not issubclass(kind, SystemExit):
            lines = traceback.format_exception(kind, error, trace)
            sys.stderr.write(redact_text("".join(lines)))

    sys.excepthook = write
    threading.excepthook = lambda ended: write(ended.exc_type, ended.exc_value, ended.exc_traceback)
