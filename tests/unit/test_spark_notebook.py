"""Errors of the data source in a notebook or a script: one sentence, whatever Spark wraps them in."""

import sys
from types import SimpleNamespace

import pytest

from replicator.errors import InputError
from replicator.spark.base.failures import TaskError, task_errors
from replicator.spark.source.notebook import OneSentence, register

SENTENCE = "INPUT: orders: there is no such thing. Name another.\n"


def session(registered, master="local[2]", **conf):
    """As much of a Spark session as registering needs."""
    context = SimpleNamespace(master=master, pythonExec="python3", getConf=lambda: conf)
    return SimpleNamespace(
        sparkContext=context, dataSource=SimpleNamespace(register=registered.append)
    )


def wrapped():
    """What Spark makes of an error of a reader."""
    with pytest.raises(TaskError) as raised, task_errors():
        raise InputError("there is no such thing", subject="orders", remedy="Name another.")
    return RuntimeError(
        "[PYTHON_DATA_SOURCE_ERROR] Failed to plan: Traceback (most recent call last):\n  File x\n"
        f"replicator.spark.base.failures.TaskError: {raised.value}\n\n\tat org.apache.spark.X(y)\n"
    )


def test_the_sentence_comes_first_in_what_spark_shows():
    lines = str(wrapped()).splitlines()
    assert any("TaskError: orders: there is no such thing. Name another." in line for line in lines)


def test_a_script_ends_with_one_sentence_and_other_errors_as_before(capsys):
    before = []
    hook = OneSentence(lambda *given: before.append(given))
    error = wrapped()
    hook(RuntimeError, error, None)
    assert capsys.readouterr().err == SENTENCE
    assert not before
    other = ValueError("x")
    hook(ValueError, other, None)
    assert before == [(ValueError, other, None)]


def test_a_notebook_shows_one_sentence_and_other_errors_as_before(monkeypatch, capsys):
    shown, handlers, registered = [], [], []
    shell = SimpleNamespace(
        set_custom_exc=lambda kinds, handler: handlers.append(handler),
        showtraceback=lambda given, tb_offset: shown.append(given),
    )
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    register(session(registered))
    assert [each.name() for each in registered] == ["replicator-kafka"]
    (handler,) = handlers
    handler(shell, RuntimeError, wrapped(), None, tb_offset=1)
    assert capsys.readouterr().err == SENTENCE
    assert not shown
    other = ValueError("x")
    handler(shell, ValueError, other, None)
    assert shown == [(ValueError, other, None)]


def test_tasks_of_a_local_master_use_the_python_of_the_notebook(monkeypatch):
    monkeypatch.setattr(sys, "excepthook", OneSentence(sys.excepthook))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    here = session([])
    register(here)
    assert here.sparkContext.pythonExec == sys.executable
    named = {"spark.pyspark.python": "python3.12"}
    for other in (session([], "spark://host:7077"), session([], **named)):
        register(other)
        assert other.sparkContext.pythonExec == "python3"
