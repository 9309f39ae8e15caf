"""Ctrl-C that meets a client while it is freed is Ctrl-C, not an internal error."""

import _thread
import operator
import signal
from collections import deque

import pytest
from confluent_kafka.admin import AdminClient

from replicator.cli import main
from replicator.clock import SystemClock
from replicator.drill.execution.steps import StepLog
from replicator.interruption import ctrl_c_as_itself


@pytest.fixture(autouse=True)
def ctrl_c():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def freed_under_ctrl_c(*_) -> None:
    """No Python code runs between the signal and the client's end."""
    clients = [AdminClient({"bootstrap.servers": "127.0.0.1:1"})]
    deque(map(operator.call, [_thread.interrupt_main, clients.clear]), maxlen=0)


def test_the_library_hides_it():
    with pytest.raises(SystemError):
        freed_under_ctrl_c()


def test_it_is_told_as_itself():
    with pytest.raises(KeyboardInterrupt), ctrl_c_as_itself():
        freed_under_ctrl_c()


def test_another_internal_error_stays_one():
    with pytest.raises(SystemError, match="of another kind"), ctrl_c_as_itself():
        raise SystemError("of another kind")


def test_a_command_ends_as_interrupted(monkeypatch, capsys):
    monkeypatch.setattr(main, "build_app", lambda _: lambda *_, **__: freed_under_ctrl_c())
    assert main.run_command(["status"]) == main.INTERRUPTED
    assert capsys.readouterr().err.strip() == "Interrupted."


def test_a_step_of_a_drill_is_recorded_as_interrupted():
    steps = StepLog(SystemClock(), notify=lambda *_: None)
    with pytest.raises(KeyboardInterrupt), steps.step("fault"):
        freed_under_ctrl_c()
    (step,) = steps.steps
    assert (step.ok, step.result) == (False, "interrupted")
