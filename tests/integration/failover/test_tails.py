"""What becomes of a tail: listed before, decided by topic, injected later, and asked about again."""

import pytest
from whole_topic import read_topic

from replicator.cli.main import run_command
from replicator.errors import InputError
from replicator.failover.run.history import history


def values(lab, cluster, *, partition=0):
    """Every committed value of a partition, with the hops it carries."""
    found = []
    for message in read_topic(cluster, lab.topic, [partition]):
        hops = dict(message.headers() or []).get("replicator-hops", b"").decode()
        found.append((message.value(), hops))
    return found


@pytest.fixture
def returned(link):
    """East is back with three records in partition 0 that west never got."""
    lab = link()
    lab.apply({0: 5, 1: 5}, records=5)
    lab.role("west", "promoted", 1)
    lab.write(lab.east, 3)
    return lab


def test_a_dry_run_lists_the_tail_by_topic_with_what_would_become_of_it(returned):
    report = returned.run("failback", dry_run=True, tail_topics={returned.topic: "inject"})
    (check,) = (one for one in report.checks if one.check == "tail")
    assert check.detail == (f"at most 3 records never reached west: {returned.topic}: 3 (inject)")
    assert [(one.topic, one.records) for one in report.loss.topics] == [(returned.topic, 3)]


def test_an_exported_tail_is_injected_later_once(returned, capsys):
    report = returned.run("failback", and_switch=False, export=returned.directory)
    assert report.outcome == "done", report
    (entry,) = history(returned.plan, "dr")["entries"]
    assert next(one for one in entry["steps"] if one["step"] == "salvage")["evidence"]["sha256"]
    assert values(returned, returned.west) == []
    (file,) = returned.directory.glob("*-tail.jsonl")
    command = ["tail", "inject", str(file), "--link", "dr", "--yes", "-f", str(returned.file)]
    for _ in range(2):  # the second time there is nothing left to inject
        assert run_command(command) == 0
    assert values(returned, returned.west) == [
        (f"v-{number}".encode(), f"east/{returned.topic}/0/{number + 5}") for number in range(3)
    ]
    assert "3 were there already" in capsys.readouterr().out
    renamed = file.rename(file.with_name("other.jsonl"))
    assert run_command([*command[:2], str(renamed), *command[3:]]) == InputError.exit_code


def test_an_operator_who_says_no_before_the_switchover_keeps_the_reversed_mirroring(returned):
    answers = [True, False]
    report = returned.run("failback", export=returned.directory, manual_fence=True, answers=answers)
    assert (report.outcome, report.epoch) == ("done", 1), report
    assert [one.step for one in report.steps][-1] == "catch-up"
    assert "Switch over from west to east now?" in returned.asked[-1].text
    assert returned.control(returned.west).role("dr").state == "mirroring"
