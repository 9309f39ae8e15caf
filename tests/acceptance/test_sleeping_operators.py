"""An operator sleeps in the middle of a step while another goes on: on waking, nothing of it takes effect."""

import itertools
import threading

import pytest
from role_changes import Operator

from replicator.control.store.controller_writer import ControllerWriter
from replicator.errors import ReplicatorError
from replicator.failover.clusters import reverse_flow as turning
from replicator.failover.steps.journal import TakenOverError

FLOW = "east->west"
BACK = "west->east"
PATIENCE_SECONDS = 120.0


class Sleeper:
    """Runs a switchover that stops before its nth fence of lanes, until it is woken."""

    def __init__(self, monkeypatch, operator, *, before):
        self._asleep, self._wake = threading.Event(), threading.Event()
        self._error: list[ReplicatorError] = []
        self._operator = operator
        self._thread = threading.Thread(target=self._run, name="sleeper", daemon=True)
        fences = itertools.count(1)

        class Slow(ControllerWriter):
            def __init__(writer, *arguments, **options):  # noqa: N805  self is the sleeper here
                if threading.current_thread() is self._thread and next(fences) == before:
                    self._asleep.set()
                    self._wake.wait(PATIENCE_SECONDS)
                super().__init__(*arguments, **options)

        monkeypatch.setattr(turning, "ControllerWriter", Slow)

    def _run(self):
        try:
            self._operator.run("switchover", to="west")
        except ReplicatorError as error:
            self._error.append(error)

    def begin(self):
        """Returns once it sleeps."""
        self._thread.start()
        assert self._asleep.wait(PATIENCE_SECONDS), self._error

    def end(self):
        """Wakes it; returns how it ended."""
        self._wake.set()
        self._thread.join(PATIENCE_SECONDS)
        (error,) = self._error
        return error


@pytest.mark.slow
@pytest.mark.parametrize("before", [1, 2], ids=["in promote", "in turn"])
def test_one_who_slept_while_another_went_on_changes_nothing_on_waking(
    east, west, scene, monkeypatch, before
):
    scene.active_passive(east, west, fencing={"method": "manual"})
    scene.worker()
    writer = scene.writer(east, rate=200)
    scene.copying(FLOW)
    ann, bob = Operator(scene, "ann"), Operator(scene, "bob")
    ann.on = {("fence", "began"): writer.stop}
    sleeper = Sleeper(monkeypatch, ann, before=before)
    sleeper.begin()
    assert bob.run("switchover", resume=True).outcome == "done"
    scene.expect(BACK)
    moved = scene.writer(west, rate=200)
    scene.copying(BACK)
    error = sleeper.end()
    assert isinstance(error, TakenOverError)
    assert "bob has taken this switchover over" in error.message
    role = bob.role()
    assert (role.active, role.epoch, role.state) == ("west", 1, "mirroring")
    moved.wait_acked(200)
    scene.copying(BACK)
    scene.settled()
