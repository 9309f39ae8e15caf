"""Many threads that speak the protocol for the first time in one process, at the same moment."""

import subprocess
import sys

import pytest

PROGRAM = """
import gc, sys, threading
from kafka.protocol.api_message import ApiMessage
from replicator.wire.connection.protocol import KafkaProtocol

THREADS = 6
kinds = [kind for kind in ApiMessage.__subclasses__() if kind.is_request()]
steps = [(kind, version) for kind in kinds for version in range(kind.max_version + 1)]
barrier = threading.Barrier(THREADS)
sys.setswitchinterval(1e-6)

def response_class(kind, version):
    request = kind(version=version)
    KafkaProtocol(client_id="test").send_request(request)
    return request.header.get_response_class()  # what the arrival of a response asks for

def run():
    for kind, version in steps:
        barrier.wait()
        response_class(kind, version)

threads = [threading.Thread(target=run) for _ in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
gc.collect()
for kind in kinds:
    assert response_class(kind, 0).max_version >= 0
assert len(steps) > 60, steps
"""


@pytest.mark.parametrize("attempt", range(3))
def test_response_classes_are_made_once_for_all_threads(attempt):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
