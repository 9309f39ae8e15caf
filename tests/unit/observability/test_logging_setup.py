import io
import json
import logging
import subprocess
import sys
import warnings
from importlib import import_module

import pytest
import structlog

from replicator.observability.logging import (
    configure_logging,
    get_logger,
)
from replicator.redaction import register_secret

pytestmark = pytest.mark.usefixtures("restored_logging")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_not_on_a_terminal_each_event_is_one_json_object_with_what_was_bound():
    stream = io.StringIO()
    configure_logging(stream=stream)
    with structlog.contextvars.bound_contextvars(link="orders-dr", flow="east->west", lane=3):
        get_logger("dataplane").info("lane started", position=5)
    get_logger("dataplane").info("after")
    first, second = lines(stream)
    assert list(first)[:3] == ["at", "level", "event"]
    assert first["event"] == "lane started"
    assert first["logger"] == "replicator.dataplane"
    assert (first["link"], first["flow"], first["lane"]) == ("orders-dr", "east->west", 3)
    assert first["position"] == 5
    assert "link" not in second


def test_on_a_terminal_events_are_text_and_no_color_is_honoured(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    configure_logging(stream=stream)
    get_logger("dataplane").warning("lane stopped", lane=3)
    assert "lane stopped" in stream.getvalue()
    assert "lane=3" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_the_format_can_be_asked_for():
    stream = Terminal()
    configure_logging(log_format="json", stream=stream)
    get_logger("dataplane").info("event")
    assert lines(stream)[0]["event"] == "event"


def test_other_libraries_and_warnings_go_the_same_way():
    stream = io.StringIO()
    configure_logging(stream=stream)
    logging.getLogger("some.library").error("broke: %s", "reason")
    logging.getLogger("uvicorn.error").error("port lost")
    structlog.get_logger("plain").info("direct")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old call", stacklevel=1)
    events = [line["event"] for line in lines(stream)]
    assert events[:3] == ["broke: reason", "port lost", "direct"]
    assert "old call" in events[3]


def test_chatter_and_debug_show_only_with_debug():
    quiet, loud = io.StringIO(), io.StringIO()
    for stream, debug in ((quiet, False), (loud, True)):
        configure_logging(stream=stream, debug=debug)
        logging.getLogger("uvicorn.error").info("started")
        get_logger("control").debug("looked")
    assert lines(quiet) == []
    assert [line["event"] for line in lines(loud)] == ["started", "looked"]


@pytest.mark.parametrize("imported_first", [True, False])
def test_the_library_that_tells_logins_byte_for_byte_never_chats(imported_first):
    if imported_first:
        import_module("replicator.wire.connection.protocol")
    configure_logging(log_format="json", debug=True, stream=io.StringIO())
    import_module("replicator.wire.connection.protocol")
    for name in ("kafka", "kafka.protocol.parser", "kafka.net.sasl"):
        assert not logging.getLogger(name).isEnabledFor(logging.INFO)


def test_configuring_twice_writes_each_event_once():
    stream = io.StringIO()
    configure_logging(stream=stream)
    configure_logging(stream=stream)
    get_logger("control").info("once")
    assert len(lines(stream)) == 1


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_no_way_into_a_log_line_lets_a_secret_through(log_format):
    secret = "s3cr'et\\wörd"
    stream = io.StringIO()
    configure_logging(log_format=log_format, stream=stream)
    register_secret(secret)
    log = get_logger("kafka")
    event = "event " + secret
    log.info(event, text=secret, nested={"a": [secret, (secret,)], secret: 1})
    log.info("object", thing=Exception(secret), raw=secret.encode(), many={secret})
    log.info("named", sasl_password="not registered one", **{"ssl.key.pem": "not registered two"})
    log.info(
        "pem", pem="-----BEGIN PRIVATE KEY-----\nnot registered three\n-----END PRIVATE KEY-----"
    )
    logging.getLogger("lib").warning("std %s", secret)
    logging.getLogger("lib").warning("config sasl.password=not-registered-four and on")
    try:
        raise ValueError(secret)
    except ValueError:
        log.exception("failed")
        logging.getLogger("lib").exception("failed")
    text = stream.getvalue()
    assert "wörd" not in text
    assert "w\\xf6rd" not in text
    assert "w\\u00f6rd" not in text
    assert "not registered" not in text
    assert "not-registered" not in text
    assert "and on" in text


def test_a_field_of_a_line_is_bounded():
    stream = io.StringIO()
    configure_logging(stream=stream)
    get_logger("api").error("x" * 100_000, path="y" * 100_000)
    assert len(stream.getvalue()) < 34_000
    assert lines(stream)[0]["path"].endswith("... (83616 more characters)")


def test_a_logger_used_without_configuration_never_writes_to_standard_output():
    code = (
        "from replicator.observability.logging import get_logger;"
        "get_logger('control').warning('careful'); get_logger('control').info('quiet')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == ""


def test_observability_is_imported_without_web_or_client_libraries():
    code = (
        "import sys, replicator.observability.logging, replicator.observability.health,"
        "replicator.observability.metrics, replicator.api.server.start, replicator.api.server.address;"
        "print([m for m in ('fastapi', 'uvicorn', 'confluent_kafka', 'kafka') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
