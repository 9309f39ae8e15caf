"""What Py4J says of connections that break reaches nobody, also after the session; no JVM."""

import io
import logging
import socket
import threading

import pytest
from py4j.clientserver import JavaClient, JavaParameters, PythonParameters
from py4j.java_gateway import GatewayProperty

from replicator.observability.logging import configure_logging
from replicator.spark.session.session import quiet_library


@pytest.fixture
def gateway():
    """The port of a JVM that goes away with the first question."""
    listening = socket.create_server(("127.0.0.1", 0))

    def answer():
        connection, _ = listening.accept()
        connection.recv(1024)
        connection.close()

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    yield listening.getsockname()[1]
    thread.join(10)
    listening.close()


@pytest.mark.usefixtures("restored_logging")
def test_a_connection_that_breaks_after_the_session_is_no_line_in_the_log(gateway):
    quiet_library()
    said = io.StringIO()
    configure_logging(log_format="json", stream=said)
    shared = GatewayProperty(auto_field=False, pool=None)
    client = JavaClient(JavaParameters(port=gateway), PythonParameters(port=0), shared)
    client.send_command("m\nd\no1\ne\n", retry=False)
    logging.getLogger("replicator.spark").warning("still heard")
    lines = said.getvalue().splitlines()
    assert len(lines) == 1
    assert "still heard" in lines[0]
