"""A lane that waits after an error tries another login at once, and else for as long as it was told to wait."""

import threading
import time

from replicator.dataplane.lane.login_wait import tried, wait_for_login
from replicator.logins.cluster_login import ClusterLogin
from replicator.topology.plan import ClusterPlan


def logins_of(*aliases):
    return [ClusterLogin(ClusterPlan(alias, ("127.0.0.1:1",))) for alias in aliases]


def waited(logins, before, wake, seconds):
    began = time.monotonic()
    wait_for_login(logins, before, wake, seconds=seconds)
    return time.monotonic() - began


def test_a_login_that_changed_since_the_session_began_is_tried_at_once():
    logins = logins_of("east", "west")
    before = tried(logins)
    logins[1].version += 1
    assert waited(logins, before, threading.Event(), 30.0) < 10.0


def test_a_login_that_changes_in_the_pause_ends_it():
    logins = logins_of("west")

    def change():
        logins[0].version += 1

    later = threading.Timer(0.3, change)
    later.start()
    assert waited(logins, tried(logins), threading.Event(), 30.0) < 10.0
    later.join()


def test_the_pause_ends_when_it_is_over_or_the_lane_is_woken():
    logins = logins_of("west")
    assert waited(logins, tried(logins), threading.Event(), 0.5) >= 0.5
    woken = threading.Event()
    woken.set()
    assert waited(logins, tried(logins), woken, 30.0) < 10.0
