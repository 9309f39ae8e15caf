"""Pure parts of role changes: loss, contact, reports, what clients get, what is exported."""

import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import pyarrow.parquet
import pytest
from exported_tail import read_export
from hypothesis import given
from hypothesis import strategies as st

from replicator.cli.options import Output
from replicator.cli.output import render
from replicator.cli.roles import history as cli_history
from replicator.cli.roles import role_change
from replicator.control.records.role_records import (
    ContactRecord,
    FenceRecord,
    TopicContact,
    TransitionRecord,
)
from replicator.control.roles.figures import link_metrics
from replicator.control.tasks.watch.last_contact import contact
from replicator.errors import RefusedError
from replicator.failover.clusters.fencing import remove_fence
from replicator.failover.clusters.link_clusters import LinkClusters, by_key, by_topic
from replicator.failover.clusters.tail import TailRecord, export_tail
from replicator.failover.external.hooks import run_hooks
from replicator.failover.external.programs import call_webhook, run_command
from replicator.failover.external.witness_client import witness_reaches
from replicator.failover.report.backlog import Backlog, lag_of
from replicator.failover.report.loss import loss_by_backlog, loss_by_contact, unknown_loss
from replicator.failover.report.report import Loss, TransitionReport
from replicator.failover.rules.client_properties import client_properties
from replicator.formats.checkpoint import Checkpoint
from replicator.policy.procedure import Automatic, Fencing, Hook, Procedure
from replicator.spark.archive.exported_tail import tail_to_parquet
from replicator.topology.file.load import load_text
from replicator.topology.roles import Role

TEXT = """
apiVersion: replicator/v1
kind: Topology
metadata: {name: shop}
spec:
  clusters:
    east: {bootstrapServers: ["e:1"]}
    west:
      bootstrapServers: ["w:1", "w:2"]
      security:
        protocol: SASL_SSL
        mechanism: PLAIN
        username: {env: WEST_USER}
        password: {env: WEST_PASSWORD}
        ca: {file: /etc/ca.pem}
  links:
    - name: dr
      shape: active-passive
      active: east
      passive: west
      topics: {include: [orders]}
      fencing: {method: acl, principals: ["User:shop"], fencePassive: true}
      hooks:
        beforeFence: [{command: [stop-it, now], timeout: 5s}]
        afterPromote: [{webhook: "https://example.org/moved"}]
"""
PLAN = load_text(TEXT).plan
LINK = PLAN.link("dr")


def test_fencing_and_hooks_of_the_file_are_the_procedure_of_the_link():
    procedure = LINK.procedure
    assert procedure.fencing.method == "acl"
    assert procedure.fencing.principals == ("User:shop",)
    assert procedure.fencing.fence_passive
    assert [(hook.moment, hook.timeout_seconds) for hook in procedure.hooks] == [
        ("before-fence", 5.0),
        ("after-promote", 30.0),
    ]


def test_lag_counts_all_of_a_partition_that_was_never_copied():
    lag = lag_of(
        {("orders", 0): 10, ("orders", 1): 7, ("orders", 2): 5},
        {("orders", 0): 0, ("orders", 1): 2, ("orders", 2): 5},
        {("orders", 0): Checkpoint("orders", 0, 8)},
    )
    assert lag == {("orders", 0): 2, ("orders", 1): 5, ("orders", 2): 0}


def test_a_loss_that_can_be_asked_for_is_exact_and_by_topic():
    loss = loss_by_backlog(
        Backlog({("orders", 0): 2, ("orders", 1): 3, ("logs", 0): 0}), {"orders": 1.5}
    )
    assert (loss.records, loss.seconds, loss.exact) == (5, 1.5, True)
    assert [topic.topic for topic in loss.topics] == ["logs", "orders"]


@given(
    at_contact=st.integers(0, 1000),
    copied=st.integers(0, 1500),
    pace=st.integers(0, 500),
    silent=st.floats(0.0, 30.0),
    share=st.floats(0.0, 1.0),
)
def test_an_estimate_is_never_below_what_a_writer_of_that_pace_can_have_lost(
    at_contact, copied, pace, silent, share
):
    written = at_contact + int(pace * silent * share)  # it stopped at some time since
    copied = min(copied, written)
    record = ContactRecord(
        source="east", link="dr", at_ms=0,
        topics=(TopicContact(topic="orders", ends=(at_contact,), records_per_second=float(pace)),),
    )  # fmt: skip
    loss = loss_by_contact(
        record, {("orders", 0): Checkpoint("orders", 0, copied)}, now_ms=round(silent * 1000) + 1
    )
    assert loss.records >= written - copied
    assert not loss.exact


def test_a_source_that_was_written_to_never_counts_as_copied_to_the_last_record():
    record = ContactRecord(
        source="east", link="dr", at_ms=0,
        topics=(TopicContact(topic="orders", ends=(100,), records_per_second=40.0),),
    )  # fmt: skip
    loss = loss_by_contact(
        record, {("orders", 0): Checkpoint("orders", 0, 500)}, now_ms=2_000
    )  # faster than its pace
    assert loss.records == 40


def test_a_stated_loss_is_the_same_for_the_operator_who_resumes():
    for loss in (
        loss_by_backlog(Backlog({("orders", 0): 2}), {"orders": 1.5}),
        unknown_loss(["orders"]),
    ):
        assert Loss.from_json(loss.as_json()) == loss


def test_without_a_contact_the_loss_is_reported_as_unknown():
    loss = unknown_loss(["orders"])
    assert (loss.records, loss.exact, loss.as_json()["topics"][0]["topic"]) == (0, False, "orders")


def test_a_contact_keeps_half_of_its_pace_through_a_lull():
    flow, sizes = LINK.flows[0], {"orders": 1}
    first = contact(flow, sizes, {("orders", 0): 100}, None, at_ms=0)
    second = contact(flow, sizes, {("orders", 0): 300}, first, at_ms=2000)
    third = contact(flow, sizes, {("orders", 0): 300}, second, at_ms=4000)
    paces = [one.topics[0].records_per_second for one in (first, second, third)]
    assert paces == [0.0, 100.0, 50.0]


@given(st.dictionaries(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 5)), st.integers(0)))
def test_offsets_survive_as_evidence(offsets):
    assert by_key(by_topic(offsets)) == offsets


def test_client_properties_say_where_and_how_and_hold_no_secret(monkeypatch):
    monkeypatch.setenv("WEST_PASSWORD", "hunter2")
    text = client_properties(LINK, PLAN.cluster("west"))
    assert "bootstrap.servers=w:1,w:2\n" in text
    assert "sasl.mechanism=PLAIN\n" in text
    assert "/etc/ca.pem" in text
    assert "hunter2" not in text
    assert "WEST_PASSWORD" not in text


def test_a_program_gets_the_context_and_its_output_and_failure_are_kept():
    show = (sys.executable, "-c", "import os; print(os.environ['REPLICATOR_LINK'])")
    ran = run_command(show, {"link": "dr"}, timeout_seconds=20)
    assert (ran.ok, ran.output.strip()) == (True, "dr")
    bad = run_command((sys.executable, "-c", "print('no'); exit(3)"), {}, timeout_seconds=20)
    assert not bad.ok
    assert "no" in bad.output
    assert "exit code 3" in bad.output
    slow = run_command(
        (sys.executable, "-c", "import time; time.sleep(9)"), {}, timeout_seconds=0.3
    )
    assert "not done in 0.3 s" in slow.output
    assert "cannot be run" in run_command(("/no/such",), {}, timeout_seconds=1).output


def test_a_webhook_that_does_not_answer_is_a_failure_and_its_path_is_not_shown():
    ran = call_webhook("http://127.0.0.1:9/secret-token", {}, timeout_seconds=1)
    assert not ran.ok
    assert "secret-token" not in f"{ran.name} {ran.output}"


def test_hooks_of_a_moment_run_in_order_and_end_at_the_first_that_fails():
    say = (sys.executable, "-c", "import os; print(os.environ['REPLICATOR_MOMENT'])")
    procedure = Procedure(
        hooks=(
            Hook("before-fence", say), Hook("after-fence", ("/no/such",)),
            Hook("before-fence", ("/no/such",)), Hook("before-fence", say),
        )
    )  # fmt: skip
    ran = run_hooks(procedure, "before-fence", {})
    assert [one.ok for one in ran] == [True, False]
    assert ran[0].output.strip() == "before-fence"


def test_an_exported_tail_is_read_back_byte_for_byte(tmp_path):
    records = [
        TailRecord("orders", 0, 7, 1000, b"k", None, (("trace", None), ("kind", b"\xff"))),
        TailRecord("orders", 1, 9, 3000, None, b"\x00v", ()),
    ]
    export = export_tail(
        iter(records), tmp_path / "deep" / "tail.jsonl", to_parquet=tail_to_parquet
    )
    assert export.counts == {("orders", 0): 1, ("orders", 1): 1}
    assert (export.oldest_ms, export.newest_ms) == (1000, 3000)
    assert list(read_export(export.file)) == records
    table = pyarrow.parquet.read_table(export.parquet)
    assert [row["key"] for row in table.to_pylist()] == [b"k", None]
    assert table["headers"].to_pylist()[0] == [
        {"name": "trace", "value": None}, {"name": "kind", "value": b"\xff"}
    ]  # fmt: skip
    assert not list(tmp_path.glob("**/*.part"))


@pytest.mark.parametrize(
    ("change", "injectable"),
    [({}, True), ({"timestamp_ms": 0}, False), ({"headers": (("a\udcff", b""),)}, False)],
)
def test_what_the_client_would_change_is_not_injected(change, injectable):
    record = TailRecord("orders", 0, 7, 1000, b"k", b"v", (("a", b"b"),))
    assert replace(record, **change).injectable is injectable


def test_figures_show_roles_and_the_last_change():
    role = Role("dr", 2, 0, "west", "promoted")
    last = TransitionRecord(
        link="dr", id="x", kind="failover", state="done", source="east", target="west",
        home="west", token="t", at_ms=1, by="ann",
        report={"rtoSeconds": 6.5, "loss": {"records": 12}},
    )  # fmt: skip
    figures = link_metrics(LINK, role, last)
    assert figures.roles == {"east": "passive", "west": "active"}
    assert (figures.epoch, figures.duration_seconds, figures.lost_records) == (2, 6.5, 12)
    assert link_metrics(LINK, role, None).lost_records is None


class Garbage(BaseHTTPRequestHandler):
    """A server that speaks no HTTP at all."""

    def handle_one_request(self):
        self.rfile.readline()
        self.wfile.write(b"what do you want?\n")
        self.close_connection = True


@pytest.fixture
def garbage():
    with HTTPServer(("127.0.0.1", 0), Garbage) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/down"
        server.shutdown()
        thread.join()


def test_an_answer_that_is_none_is_a_hook_that_failed_and_a_witness_that_says_nothing(garbage):
    assert not call_webhook(garbage, {}, timeout_seconds=5).ok
    witness = Automatic(witness_http=garbage)
    assert witness_reaches(PLAN, witness, "east", now_ms=0) is None


def test_the_operator_is_told_when_the_loss_is_unknown(capsys):
    report = TransitionReport(
        id="x", kind="failover", link="dr", from_cluster="east", to_cluster="west", epoch=1,
        outcome="done", at_ms=1, by="ann", loss=unknown_loss(["orders"]),
    )  # fmt: skip
    render(report.as_json(), Output.TEXT, text=role_change._text(report))
    shown = capsys.readouterr().out
    assert "loss not known" in shown
    assert "0 records" not in shown
    entry = report.as_json()
    assert "loss not known" in cli_history._details(entry)[0]
    last = TransitionRecord(
        link="dr", id="x", kind="failover", state="done", source="east", target="west",
        home="west", token="t", at_ms=1, by="ann", report=entry,
    )  # fmt: skip
    assert link_metrics(LINK, Role("dr", 1, 0, "west", "promoted"), last).lost_records is None


def test_writers_that_a_command_kept_off_are_not_let_on_by_a_file_that_forgot_the_command():
    record = FenceRecord(
        link="dr", cluster="east", method="command", state="held", at_ms=1, by="ann"
    )
    with (
        LinkClusters(PLAN, LINK, PLAN.cluster("east"), PLAN.cluster("west")) as sides,
        pytest.raises(RefusedError, match="the file no longer names one to unfence") as refused,
    ):
        remove_fence(sides, sides.old, Fencing("acl"), record)
    assert "method: command" in refused.value.remedy
