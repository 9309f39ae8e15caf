"""What an operator reads when a role change ends before it is done, and after a dry run."""

from pathlib import Path

import pytest
from rich.console import Console

from replicator.cli.roles.role_change import _repeated, _text
from replicator.failover.report.report import TransitionReport
from replicator.failover.rules.commands import resume_command, rollback_command, still_open
from replicator.failover.rules.request import TransitionRequest


def test_an_open_transition_is_named_with_the_commands_that_finish_it():
    text = still_open("switchover", "dr", ["--file", "/etc/my topology.yaml"])
    assert "The switchover of link 'dr' is still open, and writers may still be fenced." in text
    for doing in ("--resume", "--rollback"):
        assert f"replicator switchover --link dr --file '/etc/my topology.yaml' {doing}" in text


def test_a_failover_has_no_rollback_to_offer():
    assert rollback_command("failover", "dr") == ""
    assert "Roll it back" not in still_open("failover", "dr")
    assert resume_command("failover", "dr") == "replicator failover --link dr --resume"


def test_options_that_the_journal_does_not_keep_are_repeated():
    request = TransitionRequest(kind="failback", link="dr", by="ann", export=Path("/tails"))
    assert _repeated(request, Path("t.yaml")) == ["--file", "t.yaml", "--export", "/tails"]
    assert _repeated(TransitionRequest(kind="failback", link="dr", by="ann"), None) == []


@pytest.mark.parametrize(("outcome", "would"), [("done", "begin"), ("refused", "be refused")])
def test_a_dry_run_says_that_nothing_was_changed(outcome, would):
    report = TransitionReport(
        id="1", kind="switchover", link="dr", from_cluster="east", to_cluster="west", epoch=0,
        outcome=outcome, at_ms=0, by="ann", dry_run=True,
    )  # fmt: skip
    console = Console(width=200)
    with console.capture() as printed:
        console.print(_text(report))
    assert f"dry run, nothing was changed; a real run would {would}" in printed.get()
    assert report.as_json()["dryRun"] is True
