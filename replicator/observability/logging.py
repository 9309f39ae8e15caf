"""Logs as events with fields, configured once; everything of every library goes one way.

The way: structlog, the standard library's loggers (uvicorn's among them) and warnings all end in one
handler on the root logger, which adds the bound fields, redacts, and writes one line to stderr: JSON
when stderr is not a terminal, readable text when it is. Standard output stays for results.
"""

import logging
import os
import sys
from collections.abc import MutableMapping
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import Processor

from replicator.redaction import redact_fields, redact_text

LogFormat = Literal["json", "text"]

MOST_CHARACTERS = 16_384
"""Of one field of a line; what a client or a broker sends may be longer."""

Logger = structlog.stdlib.BoundLogger
EventDict = MutableMapping[str, Any]

# They log at INFO what only someone who debugs a library wants to read.
_CHATTY = ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "httpx", "httpcore")

# At INFO it logs logins byte for byte, so it stays quiet even with --debug.
_LOGS_SECRETS = "kafka"

_SHARED: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
)
_FROM_STRUCTLOG: tuple[Processor, ...] = (
    structlog.stdlib.filter_by_level,
    *_SHARED,
    structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
)


def configure_logging(
    *,
    log_format: LogFormat | None = None,
    debug: bool = False,
    stream: TextIO | None = None,
) -> None:
    """Sends all logs of the process to ``stream`` (stderr); call it first thing, may be repeated.

    Args:
        log_format: None chooses text on a terminal and JSON elsewhere.
        debug: also debug events, and what libraries chat about.
        stream: where lines go; stderr as it is at each line when None.
    """
    target = stream if stream is not None else sys.stderr
    terminal = target.isatty()
    chosen = log_format or ("text" if terminal else "json")
    handler = logging.StreamHandler(target)
    handler.setFormatter(_formatter(chosen, colours=terminal and not os.environ.get("NO_COLOR")))
    root = logging.getLogger()
    for old in [each for each in root.handlers if getattr(each, "replicator", False)]:
        root.removeHandler(old)
    handler.__dict__["replicator"] = True
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if debug else logging.INFO)
    for name in _CHATTY:
        library = logging.getLogger(name)
        library.handlers.clear()
        library.propagate = True
        library.setLevel(logging.NOTSET if debug else logging.WARNING)
    logging.getLogger(_LOGS_SECRETS).setLevel(logging.WARNING)
    # The client library reports every lost connection and every retry. What matters of it becomes
    # a state with a remedy; the rest would drown it.
    logging.getLogger("replicator.kafka").setLevel(logging.DEBUG if debug else logging.CRITICAL)
    logging.captureWarnings(capture=True)
    structlog.configure(
        processors=list(_FROM_STRUCTLOG),
        wrapper_class=Logger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def get_logger(room: str) -> Logger:
    """The logger of a room, by its name: ``get_logger("dataplane")``.

    It ends in the standard library's logger of that name whether or not logging was configured, so
    a library use of this package never writes to standard output.
    """
    logger: Logger = structlog.wrap_logger(
        logging.getLogger(f"replicator.{room}"),
        processors=list(_FROM_STRUCTLOG),
        wrapper_class=Logger,
    )
    return logger


def _formatter(log_format: LogFormat, *, colours: bool) -> logging.Formatter:
    last: list[Processor] = [structlog.processors.JSONRenderer(ensure_ascii=False)]
    if log_format == "text":
        last = [structlog.dev.ConsoleRenderer(colors=colours, timestamp_key="at"), _redact_line]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=list(_SHARED),
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.StackInfoRenderer(),
            structlog.processors.format_exc_info,
            _redact,
            *last,
        ],
    )


def _redact(_logger: object, _method: str, event: EventDict) -> EventDict:
    fields = {name: _bounded(value) for name, value in redact_fields(event).items()}
    first = [name for name in ("at", "level", "event") if name in fields]
    return {name: fields[name] for name in dict.fromkeys((*first, *fields))}


def _bounded(value: object) -> object:
    if isinstance(value, str) and len(value) > MOST_CHARACTERS:
        left_out = len(value) - MOST_CHARACTERS
        return f"{value[:MOST_CHARACTERS]}... ({left_out} more characters)"
    return value


def _redact_line(_logger: object, _method: str, line: object) -> str:
    """Readable text quotes and wraps values; what that makes of a secret is redacted again."""
    return redact_text(str(line))
