"""The stated targets, and whether the figures reach them. Pure.

A target names two things that were measured in the same run; a ratio of one machine's figures says
more about another machine than either figure alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import idle
import latency
import startup
import throughput
from mm2 import MirrorMaker2
from replicator_run import Replicator

YARDSTICK = MirrorMaker2("tuned")
EXACTLY_ONCE = Replicator("exactly-once", lanes=1)
EXACTLY_ONCE_AUTO = Replicator("exactly-once", lanes="auto")
NAMED = replace(EXACTLY_ONCE, worker_id="bench-0")
AT_LEAST_ONCE = Replicator("at-least-once", lanes=1)
SMALL = throughput.Payload("100 B", 100, 4_000_000)
LARGE = throughput.Payload("1 KB", 1_000, 800_000)
SLOW = latency.Pace("1 k rec/s of 100 B", 1_000, 100)
FAST = latency.Pace("10 k rec/s of 1 KB", 10_000, 1_000)
IDLE_PERCENT = 3.0
STEADY_SECONDS = 5.0
COLD_START_SECONDS = 2.5
CAUGHT_UP_SECONDS = 8.0
SIGKILL_SECONDS = 12.0
SIGTERM_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """One target: what was asked for, what came out."""

    what: str
    target: str
    measured: str
    reached: bool


def of_throughput(results: Sequence[throughput.Result]) -> list[Verdict]:
    """Rate and CPU of the records engine against the yardstick, at 100 B."""
    ours = _throughput(results, EXACTLY_ONCE.name, SMALL.label)
    theirs = _throughput(results, YARDSTICK.name, SMALL.label)
    if ours is None or theirs is None:
        return []
    rate = ours.records_per_second / theirs.records_per_second
    cpu = ours.cpu_us_per_record / theirs.cpu_us_per_record
    faults = sum(each.missing + each.surplus for each in results if each.name == ours.name)
    return [
        Verdict("100 B, exactly-once, one lane: records per second", ">= 1.3 x tuned MM2", f"{rate:.2f} x", rate >= 1.3),
        Verdict("100 B, exactly-once, one lane: CPU per record", "<= 0.65 x tuned MM2", f"{cpu:.2f} x", cpu <= 0.65),
        Verdict("records lost or doubled while measuring", "0", str(faults), faults == 0),
    ]  # fmt: skip


def of_latency(results: Sequence[latency.Result]) -> list[Verdict]:
    """p50 and p99 of both guarantees at both paces, steady within 5 s."""
    limits: list[tuple[Replicator, latency.Pace, float | None, float]] = [
        (AT_LEAST_ONCE, SLOW, 0.005, 0.020),
        (EXACTLY_ONCE, SLOW, 0.030, 0.120),
        (AT_LEAST_ONCE, FAST, None, 0.050),
        (EXACTLY_ONCE, FAST, None, 0.250),
    ]
    verdicts = []
    for contender, pace, p50, p99 in limits:
        for each in results:
            if (each.name, each.pace) != (contender.name, pace.label) or each.failure:
                continue
            what = f"latency, {contender.delivery}, {pace.label}"
            if p50 is not None:
                verdicts.append(_at_most(f"{what}: p50", each.p50_seconds, p50, milli=True))
            verdicts.append(_at_most(f"{what}: p99", each.p99_seconds, p99, milli=True))
            steady = max(each.settle_seconds, each.steady_after_seconds)
            verdicts.append(_at_most(f"{what}: steady after", steady, STEADY_SECONDS, milli=False))
    return verdicts


def of_startup(results: Sequence[startup.Result]) -> list[Verdict]:
    """The first record, catching up, taking over."""
    limits = [
        ("cold start", COLD_START_SECONDS),
        ("caught up", CAUGHT_UP_SECONDS),
        ("SIGKILL, its lanes", SIGKILL_SECONDS),
        ("SIGTERM, its lanes", SIGTERM_SECONDS),
    ]
    return [
        _at_most(f"{each.what} ({each.name})", each.seconds, limit, milli=False)
        for part, limit in limits
        for each in results
        if part in each.what and each.name.startswith("replicator") and not each.failure
    ]


def of_idle(results: Sequence[idle.Result]) -> list[Verdict]:
    """CPU of 200 idle topics."""
    return [
        Verdict(
            f"{idle.TOPICS} idle topics ({each.name})",
            f"<= {IDLE_PERCENT:g} % of a core",
            f"{each.cpu_percent:.2f} %",
            each.cpu_percent <= IDLE_PERCENT,
        )
        for each in results
        if each.name.startswith("replicator") and not each.failure
    ]


def _throughput(
    results: Sequence[throughput.Result], name: str, payload: str
) -> throughput.Result | None:
    for each in results:
        if (each.name, each.payload) == (name, payload) and each.copies and not each.failure:
            return each
    return None


def _at_most(what: str, measured: float, limit: float, *, milli: bool) -> Verdict:
    if milli:
        shown, asked = f"{measured * 1e3:.1f} ms", f"<= {limit * 1e3:g} ms"
    else:
        shown, asked = f"{measured:.2f} s", f"<= {limit:g} s"
    return Verdict(what, asked, shown, measured <= limit)
