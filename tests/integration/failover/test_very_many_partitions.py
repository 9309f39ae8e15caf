"""A transition of a link with very many partitions is recorded, ends, and is rolled back."""

import secrets

from replicator.clock import SystemClock
from replicator.control.records.role_records import StepRecord, TransitionRecord
from replicator.failover.steps.journal import Journal

PARTITIONS = 20_000


def test_a_step_of_twenty_thousand_partitions_is_written_and_the_transition_is_rolled_back(link):
    lab = link(fencing={"method": "manual"})
    lab.apply({0: 5, 1: 5}, records=5)
    ends = {f"orders-{number:05d}-{secrets.token_hex(4)}": [number] for number in range(PARTITIONS)}
    with lab.clusters() as clusters:
        header = TransitionRecord(
            link="dr", id="large", kind="switchover", state="open", source="east", target="west",
            home="west", token="t", at_ms=1, by="ann",
        )  # fmt: skip
        journal = Journal(clusters, header, clock=SystemClock())
        try:
            journal.begin()
            step = StepRecord(
                link="dr", id="large", step="drain", state="done", at_ms=2, by="ann",
                evidence={"ends": ends, "again": dict(ends)},
            )  # fmt: skip
            assert len(step.model_dump_json()) > 1_048_588  # what a broker takes by default
            journal.write([step])
        finally:
            journal.close()
    (stored,) = lab.control(lab.west).steps("dr", "large")
    assert stored.evidence["ends"] == ends
    report = lab.run("switchover", roll_back=True)
    assert report.outcome == "rolled-back", report
