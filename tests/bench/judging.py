"""The stated targets, and whether the figures reach them. Pure.

A target names two things that were measured in the same run; a ratio of one machine's figures says
more about another machine than either figure alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import cases
import idle
import latency
import startup
import throughput
import wan
from contender import Contender
from replicator_run import Replicator

IDLE_PERCENT = 3.0
COLD_START_SECONDS = 2.5
CAUGHT_UP_SECONDS = 8.0
SIGKILL_SECONDS = 12.0
SIGTERM_SECONDS = 2.0
BUSY_LANE_BYTES = 80e6
LINE_SHARE, LOSSY_SHARE = 0.9, 0.5
LOSSY_CONNECTIONS = 8


@dataclass(frozen=True, slots=True)
class Verdict:
    """One target: what was asked for, what came out, and what bounds it where that is known."""

    what: str
    target: str
    measured: str
    reached: bool
    bound: str = ""


@dataclass(frozen=True, slots=True)
class _Ratio:
    """Asked of an engine at a payload, beside tuned MirrorMaker 2; 0 is not asked."""

    contender: Contender
    payload: str
    least_rate: float
    most_cpu: float
    bound: str


_BROKERS = "the brokers, which share the two cores: they check, store and index every batch"
_RATIOS = (
    _Ratio(cases.BATCHES, cases.SMALL.label, 4.0, 1 / 15, _BROKERS),
    _Ratio(cases.BATCHES, cases.LARGE.label, 0.0, 1 / 4, "bytes: four fifths of it are the kernel's copies in and out of sockets"),
    *(_Ratio(cases.BATCHES, each.label, 4.0, 1 / 20, _BROKERS) for each in (*cases.JSON, *cases.JSON_OTHERS)),
    _Ratio(cases.BATCHES, cases.TLS.label, 2.5, 1 / 8, "encryption on both sides of every process, two brokers and the copier on two cores"),
    _Ratio(cases.RECORDS, cases.SMALL.label, 1.3, 0.65, "the client library: one lane reaches nearly the bare loop"),
)  # fmt: skip


def of_throughput(results: Sequence[throughput.Result]) -> list[Verdict]:
    """Rate and CPU of both engines against the yardstick, memory, and what was lost or doubled."""
    found = {(each.name, each.payload): each for each in results if each.copies}
    verdicts: list[Verdict] = []
    for asked in _RATIOS:
        ours = found.get((asked.contender.name, asked.payload))
        theirs = found.get((cases.YARDSTICK.name, asked.payload))
        if ours is None or theirs is None:
            continue
        what = f"{_engine(asked.contender)}, {asked.payload}"
        rate = ours.records_per_second / theirs.records_per_second
        cpu = ours.cpu_us_per_record / theirs.cpu_us_per_record
        if asked.least_rate:
            verdicts.append(
                Verdict(
                    f"{what}: records per second", f">= {asked.least_rate:g} x tuned MM2",
                    f"{rate:.2f} x", rate >= asked.least_rate, asked.bound,
                )
            )  # fmt: skip
        verdicts.append(
            Verdict(
                f"{what}: CPU per record", f"<= {_share(asked.most_cpu)} of tuned MM2's",
                _share(cpu), cpu <= asked.most_cpu, asked.bound,
            )
        )  # fmt: skip
    busy = found.get((cases.BATCHES.name, cases.SMALL.label))
    if busy is not None:
        verdicts.append(
            Verdict(
                "batches, 100 B: memory beyond what it has at the first record", "<= 80 MB",
                f"{busy.busy_rss_bytes / 1e6:.0f} MB", busy.busy_rss_bytes <= BUSY_LANE_BYTES,
            )
        )  # fmt: skip
    ours_all = [each for each in found.values() if each.name.startswith("replicator")]
    counted = sum(each.counted for each in ours_all)
    faults = sum(each.missing + each.surplus for each in ours_all)
    if counted:
        what = f"records lost or doubled in {counted} counted copies"
        verdicts.append(Verdict(what, "0", str(faults), faults == 0))
    return verdicts


def of_latency(results: Sequence[latency.Result], *, where: str = "") -> list[Verdict]:
    """p99 of both engines beside MirrorMaker 2's of the same guarantee, and p50 and p99 in themselves."""
    found = {(each.name, each.pace): each for each in results if not each.failure}
    asked: list[tuple[Replicator, Contender, float]] = [
        (cases.BATCHES, cases.MM2_EXACTLY_ONCE, 0.5),
        (cases.BATCHES_AT_LEAST_ONCE, cases.MM2_DEFAULT, 1.0),
        (cases.RECORDS, cases.MM2_EXACTLY_ONCE, 1.0),
        (cases.RECORDS_AT_LEAST_ONCE, cases.MM2_DEFAULT, 1.0),
    ]
    verdicts: list[Verdict] = []
    for pace in (cases.SLOW, cases.FAST):
        floor = found.get((latency.FLOOR, pace.label))
        shown = "" if floor is None else f"the source read directly has {_ms(floor.p99_seconds)}"
        for ours, theirs, most in asked:
            mine, other = found.get((ours.name, pace.label)), found.get((theirs.name, pace.label))
            if mine is None or other is None:
                continue
            ratio = mine.p99_seconds / other.p99_seconds
            verdicts.append(
                Verdict(
                    f"{_engine(ours)}, {ours.delivery}, {pace.label}{where}: p99",
                    f"<= {most:g} x {theirs.name.replace('MirrorMaker 2', 'MM2')}",
                    f"{ratio:.2f} x ({_ms(mine.p99_seconds)} to {_ms(other.p99_seconds)})",
                    ratio <= most,
                    shown,
                )
            )
    return verdicts


def of_starts(results: Sequence[startup.Result]) -> list[Verdict]:
    """The first record, catching up, taking over; a failure reaches nothing."""
    limits = [
        ("cold start", COLD_START_SECONDS),
        ("caught up", CAUGHT_UP_SECONDS),
        ("SIGKILL, its lanes", SIGKILL_SECONDS),
        ("SIGTERM, its lanes", SIGTERM_SECONDS),
    ]
    return [
        Verdict(
            f"{each.what} ({each.name.removeprefix('replicator ')})", f"<= {limit:g} s",
            f"{each.seconds:.2f} s" if each.measured else "failed",
            bool(each.measured) and each.seconds <= limit,
        )
        for part, limit in limits
        for each in results
        if part in each.what and each.name.startswith("replicator")
    ]  # fmt: skip


def of_idle(results: Sequence[idle.Result]) -> list[Verdict]:
    """CPU of 200 idle topics."""
    return [
        Verdict(
            f"{idle.TOPICS} idle topics ({each.name.removeprefix('replicator ')})",
            f"<= {IDLE_PERCENT:g} % of a core",
            f"{each.cpu_percent:.2f} %",
            each.cpu_percent <= IDLE_PERCENT,
        )
        for each in results
        if each.name.startswith("replicator") and each.rounds
    ]


def of_wan(results: Sequence[wan.Result]) -> list[Verdict]:
    """The share of the line's rate without loss, and what is more than one connection with it; a failure reaches nothing."""
    plain = {(each.far, each.loss): each.of_cap for each in results if each.name == wan.PLAIN}
    return [
        _of_line(each, plain[each.far, each.loss])
        for each in results
        if each.name.startswith("replicator")
    ]


def _of_line(result: wan.Result, plain_share: float) -> Verdict:
    name = result.name.removeprefix("replicator ").removesuffix(", 1 lane")
    loss = f"{result.loss:.0%} loss" if result.loss else "no loss"
    what = f"{result.far} 100 ms away, {loss} ({name})"
    if result.loss and result.far == "source":
        what, least = f"{what}: to one plain connection", LOSSY_CONNECTIONS
        value, times, shown = result.to_plain, " x", f"{result.to_plain:.1f} x"
    else:
        what, least = (
            f"{what}: share of the line's rate",
            LOSSY_SHARE if result.loss else LINE_SHARE,
        )
        value, times, shown = result.of_cap, "", f"{result.of_cap:.2f}"
    return Verdict(
        what,
        f">= {least:g}{times}",
        "failed" if result.failure else shown,
        not result.failure and value >= least,
        f"one plain connection has {plain_share:.2f} of the line's rate",
    )


def _engine(contender: Contender) -> str:
    return contender.engine if isinstance(contender, Replicator) else contender.name


def _share(value: float) -> str:
    return f"1/{1 / value:.0f}" if value < 0.3 else f"{value:.2f}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.0f} ms"
