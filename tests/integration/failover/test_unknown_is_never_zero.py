"""A partition of which nobody can say what is missing counts as unknown: never as copied."""

import time

import pytest
from link_lab import evidence, failed
from producing import produce

from replicator.control.records.role_records import ContactRecord, TopicContact
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import checkpoints_topic
from replicator.testing import wait_until


def place(link, **fields):
    """A checkpoint of partition 0, in every lane's partition so that it holds."""
    one = Checkpoint(link.topic, 0, at_ms=round(time.time() * 1000) + 1000, **fields)
    record = {"key": one.key(), "value": one.value()}
    in_both_lanes = ({**record, "partition": lane} for lane in range(2))
    produce(link.west, checkpoints_topic(link.name, "east"), in_both_lanes)


def stopped(link):
    place(link, offset=5, problem="TRUNCATED", detail="cut at 3")


def cut(link):
    place(link, offset=50)


def deleted(link):
    admin = link.east.admin()
    admin.delete_topics([link.topic])[link.topic].result(20)
    wait_until(
        lambda: link.topic not in admin.list_topics(timeout=20).topics,
        timeout_seconds=20.0, describe="the topic to be gone",
    )  # fmt: skip


def recreated(link):
    deleted(link)
    link.east.create_topic(link.topic, partitions=2)
    for number in range(2):
        link.write(link.east, 5, partition=number)


CASES = {
    stopped: "copying stopped: TRUNCATED",
    cut: "its log ends at 5, and was copied up to 50",
    deleted: "has no such topic any more",
    recreated: "the topic was created anew",
}


@pytest.mark.parametrize("befall", CASES, ids=lambda case: case.__name__)
def test_what_is_not_known_needs_accept_loss_and_refuses_a_switchover(link, befall):
    lab = link(fencing={"method": "manual"})
    lab.apply({0: 5, 1: 5}, records=5)
    assert lab.run("failover", dry_run=True).loss.as_json()["records"] == 0
    befall(lab)
    report = lab.run("failover", dry_run=True)
    assert CASES[befall] in failed(report)["loss"].detail, report.checks
    assert "--accept-loss" in failed(report)["loss"].remedy
    assert (report.loss.known, report.loss.exact) == (False, False)
    assert report.as_json()["loss"]["unknown"][0]["topic"] == lab.topic
    planned = lab.run("switchover", dry_run=True)
    assert CASES[befall] in failed(planned)["partitions"].detail, planned.checks


def test_the_loss_at_the_end_is_what_was_missing_once_writers_were_fenced(link, tmp_path):
    lab = link(fencing={"method": "command", "fence": ["true"], "unfence": ["true"]})
    lab.apply({0: 5, 1: 5}, records=5)
    lab.write(lab.east, 3)
    lab.before_answer = lambda: lab.write(lab.east, 4)  # the operator thinks, writers go on
    report = lab.run("failover", accept_loss=True)
    assert "exactly 3 records" in lab.asked[0].text
    assert (report.loss.records, report.loss.exact) == (7, True), report.loss
    promoted = evidence(report, "promote")
    assert (promoted["stated"]["records"], promoted["oldSideFenced"]) == (3, "command")


def test_an_old_contact_says_since_when_nothing_is_known(link):
    lab = link()
    lab.apply({0: 5, 1: 5}, records=5)
    long_ago = round(time.time() * 1000) - 3_600_000
    ends = TopicContact(topic=lab.topic, ends=(5, 5), records_per_second=0.0)
    lab.store(
        lab.west, ContactRecord(source="east", link="dr", at_ms=long_ago, topics=(ends,))
    )  # fmt: skip
    lab.plan = lab.without("east")
    report = lab.run("failover", dry_run=True, unreachable_after_seconds=1.0)
    assert "unknown since" in failed(report)["loss"].detail
    assert not report.loss.known
