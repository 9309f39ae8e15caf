"""Once brokers have taken a login, only what they take as well replaces it."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from session_lab import SessionLab

from replicator.backoff import Backoff
from replicator.control.store.worker_record import lane_logins, lane_problems
from replicator.dataplane.health.connection_problems import ConnectionProblems
from replicator.dataplane.lane.lane_report import LaneReport
from replicator.dataplane.progress.lane_counters import LaneCounters
from replicator.dataplane.transport.messages import KeepLogin, decode_command, encode
from replicator.errors import AuthenticationFailedError, UnreachableError
from replicator.logins import cluster_login
from replicator.logins.cluster_login import ClusterLogin
from replicator.redaction import redact_text
from replicator.topology.plan import ClusterPlan, SecretRef, SecurityPlan


def cluster_of(directory: Path) -> ClusterPlan:
    name, file = SecretRef(literal="me"), SecretRef(file=str(directory / "password"))
    return ClusterPlan(
        "east",
        ("a:1",),
        SecurityPlan("SASL_SSL", "SCRAM-SHA-512", username=name, password=file),
    )


class Brokers:
    """What brokers take, and a login that asks them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.takes = {"pw-1"}
        self.away = False
        self.asked: list[str] = []
        self.file("pw-1")
        self.cluster = cluster_of(directory)
        self.login = ClusterLogin(self.cluster, trial=self._trial)

    def file(self, password: str) -> None:
        (self.directory / "password").write_text(password)

    def _trial(self, cluster, security) -> None:
        assert cluster == self.cluster
        self.asked.append(security.password)
        if self.away:
            raise UnreachableError("nobody answers")
        if security.password not in self.takes:
            raise AuthenticationFailedError("not that one", remedy="Another.")

    @property
    def in_use(self) -> str:
        return self.login.security().password


@pytest.fixture
def brokers(tmp_path, monkeypatch) -> Brokers:
    monkeypatch.setattr(cluster_login, "REFUSED_AGAIN", Backoff(0.0, 0.0))
    monkeypatch.setattr(cluster_login, "SILENT_AGAIN_SECONDS", 0.0)
    found = Brokers(tmp_path)
    found.login.follow()
    assert found.login.proven
    return found


def test_what_brokers_refuse_replaces_nothing_and_is_a_problem_until_they_take_it(brokers):
    login = brokers.login
    brokers.file("pw-2")
    assert brokers.in_use == "pw-1"  # not tried yet: also a client made this moment has the old one
    assert login.wake.is_set()
    login.follow()
    assert (brokers.in_use, login.version) == ("pw-1", 1)
    problem = login.problem()
    assert problem.code == "CREDENTIALS_UNUSABLE"
    assert "what was there before stays in use" in problem.detail
    assert "not that one" in problem.detail
    brokers.takes.add("pw-2")
    login.follow()
    assert (brokers.in_use, login.version, login.problem()) == ("pw-2", 2, None)


class Followed:
    """A login that brokers took, and the thread that follows it, on a clock of its own."""

    def __init__(self, directory: Path, monkeypatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        self.brokers = Brokers(directory)
        self.login = self.brokers.login
        self.login.follow()
        self.brokers.asked.clear()

    def asked_at(self, seconds: float) -> list[float]:
        """When brokers were asked in so much time."""
        began, found = self.now, []
        while self.now <= began + seconds:
            before = len(self.brokers.asked)
            self.login.wake.clear()
            self.login.follow()
            if len(self.brokers.asked) > before:
                found.append(self.now - began)
            self.now += self.login.pause_seconds
        return found


@pytest.fixture
def followed(tmp_path, monkeypatch) -> Followed:
    return Followed(tmp_path, monkeypatch)


def test_brokers_that_hear_of_a_password_just_after_the_file_are_asked_again_at_once(followed):
    followed.brokers.file("pw-2")
    followed.login.follow()
    followed.now += followed.login.pause_seconds
    assert followed.now == pytest.approx(100.25)
    followed.brokers.takes = {"pw-2"}
    followed.login.follow()
    assert followed.brokers.in_use == "pw-2"


def test_brokers_that_go_on_refusing_are_asked_more_and_more_rarely(followed):
    followed.brokers.file("pw-2")
    assert followed.asked_at(20.0) == pytest.approx(
        [0.0, 0.25, 0.75, 1.75, 3.75, 7.75, 12.75, 17.75]
    )
    followed.brokers.file("pw-3")
    assert followed.asked_at(0.5)[:2] == pytest.approx([0.0, 0.25])


def test_once_brokers_refuse_what_is_in_use_they_are_asked_soon(followed):
    followed.brokers.file("pw-2")
    followed.asked_at(13.0)  # the next time would be five seconds later
    asked = len(followed.brokers.asked)
    followed.brokers.takes = {"pw-2"}
    followed.login.refused(followed.login.security())
    assert followed.login.wake.is_set()
    assert followed.login.pause_seconds <= cluster_login.IN_USE_REFUSED_SECONDS
    followed.asked_at(cluster_login.IN_USE_REFUSED_SECONDS)
    assert followed.brokers.in_use == "pw-2"
    assert len(followed.brokers.asked) == asked + 1


def test_a_refusal_of_something_else_changes_nothing(followed):
    in_use = followed.login.security()
    followed.login.refused(in_use)  # the files hold nothing else
    assert not followed.login.wake.is_set()
    followed.brokers.file("pw-2")
    followed.login.follow()
    followed.login.wake.clear()
    pause = followed.login.pause_seconds
    followed.login.refused(replace(in_use, password="pw-2"))
    assert not followed.login.wake.is_set()
    assert followed.login.pause_seconds == pause


def test_a_login_that_was_refused_once_may_be_the_right_one_soon(followed):
    assert not followed.login.undecided
    followed.brokers.file("pw-2")
    followed.login.follow()
    assert followed.login.undecided
    followed.brokers.takes = {"pw-2"}
    followed.asked_at(1.0)
    assert not followed.login.undecided


def test_where_the_old_one_comes_back_the_problem_is_over(brokers):
    brokers.file("pw-2")
    brokers.login.follow()
    brokers.file("pw-1")
    brokers.login.follow()
    assert brokers.login.problem() is None
    assert brokers.login.version == 1


def test_while_no_broker_answers_nothing_changes_and_it_is_tried_again(brokers):
    brokers.takes.add("pw-2")
    brokers.away = True
    brokers.file("pw-2")
    brokers.login.follow()
    assert (brokers.in_use, brokers.login.problem()) == ("pw-1", None)
    brokers.away = False
    brokers.login.follow()
    assert brokers.in_use == "pw-2"


def test_what_was_taken_is_not_asked_for_again(brokers):
    for _ in range(5):
        brokers.login.follow()
    assert brokers.asked == ["pw-1"]


def test_before_brokers_accepted_any_the_newest_is_used_and_a_refusal_is_reported(tmp_path):
    brokers = Brokers(tmp_path)
    brokers.takes = {"pw-2"}
    brokers.login.follow()
    assert brokers.in_use == "pw-1"
    assert "brokers refuse what the files hold now" in brokers.login.problem().detail
    brokers.file("pw-2")
    assert brokers.in_use == "pw-2"
    brokers.login.follow()
    assert brokers.login.problem() is None
    assert brokers.login.proven


def test_a_connection_that_was_accepted_is_as_good_as_a_trial(tmp_path):
    brokers = Brokers(tmp_path)
    brokers.login.taken(brokers.login.security())
    brokers.file("pw-2")
    assert brokers.in_use == "pw-1"


def test_a_process_that_starts_now_gets_what_the_files_hold_no_longer(brokers):
    assert brokers.login.kept() is None
    brokers.file("pw-no")
    brokers.login.follow()
    kept = brokers.login.kept()
    sent = decode_command(encode(KeepLogin(brokers.cluster, kept)))
    other = ClusterLogin(sent.cluster, trial=brokers._trial)
    other.keep(sent.security)
    assert other.security().password == "pw-1"
    other.follow()
    assert other.security().password == "pw-1"
    assert "stays in use" in other.problem().detail
    brokers.file("")  # nor is what cannot be used
    assert other.security().password == "pw-1"
    assert brokers.login.security().password == "pw-1"
    assert brokers.login.kept() is not None


def test_a_login_that_was_handed_over_is_hidden_like_one_that_was_read(tmp_path):
    brokers = Brokers(tmp_path)
    brokers.file("handed-over-of-tests")
    security = brokers.login.security()
    brokers.file("other-of-tests")
    brokers.login.keep(security)
    assert "handed-over" not in redact_text("it was handed-over-of-tests")


def test_a_line_that_is_no_command_is_refused_without_being_shown(brokers):
    line = encode(KeepLogin(brokers.cluster, brokers.login.security()))
    with pytest.raises(ValueError, match="validation error") as raised:
        decode_command(line.replace(b'"kind":"login"', b'"kind":"login","x":1').replace(
            b'"cluster"', b'"clusters"'))  # fmt: skip
    assert "pw-1" not in str(raised.value)


def test_a_stuck_follower_is_a_problem(brokers, monkeypatch):
    assert brokers.login.problem() is None
    monkeypatch.setattr(cluster_login, "STILL_SECONDS", -1.0)
    problem = brokers.login.problem()
    assert problem.code == "LOGIN_NOT_FOLLOWED"
    assert problem.subject == "cluster:east"


def test_a_trial_that_reaches_no_broker_does_not_claim_a_refusal():
    from replicator.wire.probes.login_trial import log_in

    nobody = ClusterPlan("east", ("127.0.0.1:1", "127.0.0.1:2"), SecurityPlan())
    with pytest.raises(UnreachableError):
        log_in(nobody, cluster_login.login_of(nobody).security())


def test_a_stuck_follower_of_a_lane_process_is_a_problem_of_its_flow(brokers, monkeypatch):
    report = LaneReport(
        lambda: SessionLab().spec, counters=LaneCounters(),
        problems=ConnectionProblems(source="east", target="west"),
        logins=(brokers.login, ClusterLogin(ClusterPlan("west", ("b:1",)))),
        states=list, post=lambda line: None, on_stats=lambda: None, quotas=lambda: (None, None),
    )  # fmt: skip
    assert lane_problems(report.stats) == []
    monkeypatch.setattr(cluster_login, "STILL_SECONDS", -1.0)
    report.publish_changes()
    (problem,) = lane_problems(report.stats)
    assert (problem.code, problem.subject) == ("LOGIN_NOT_FOLLOWED", "cluster:east")
    assert problem.detail.startswith(f"lane process {os.getpid()}: its files and tokens have not")
    assert problem.remedy == brokers.login.problem().remedy
    assert [alias for alias, _ in lane_logins(report.stats)] == ["east"]
