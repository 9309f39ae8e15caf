"""What control topics keep of drills on real links: a digest, and the checksum of the report."""

from typing import ClassVar, Literal

from replicator.control.records.base import Record


class DrillRecord(Record):
    """One drill of a link; the report itself stands where it was run. Kept as a journal.

    ``number`` and ``previous`` are its place in the chain of reports, so that reports which were
    taken away from the end of a chain are missed here.
    """

    KIND: ClassVar[str] = "drill"
    KEY: ClassVar[tuple[str, ...]] = ("id",)
    id: str
    link: str
    name: str
    drill: str
    flow: str
    mode: Literal["real", "sandbox"]
    verdict: Literal["pass", "fail"]
    rto_seconds: float | None
    lost_records: int
    lost_seconds: float
    reread_records: int
    skipped_records: int
    number: int
    checksum: str
    previous: str
    plan_hash: str
    drill_hash: str
    at_ms: int
    by: str
    trouble: str = ""

    def entry(self) -> dict[str, object]:
        """The drill as ``history`` tells it."""
        return {**self.model_dump(mode="json", by_alias=True), "kind": self.KIND}
