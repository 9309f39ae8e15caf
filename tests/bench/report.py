"""Results as markdown, written between markers so that notes around them survive. Pure text."""

import re
from collections.abc import Sequence

import idle
import latency
import startup
import throughput
from judging import YARDSTICK, Verdict

_HEADER = """\
# Benchmarks

`make bench` measures everything below anew and rewrites what stands between the markers; the text
outside them is written by people and stays.
"""
_THROUGHPUT_TEXT = """\
## Throughput

A full topic of 4 partitions (source batches of 250 KiB, uncompressed) is copied to a fresh topic;
median of interleaved rounds. Rate and CPU are of the steady part (30 % to 95 % of the records); CPU is
that of the whole process tree, *whole* includes start and end. Every copy is counted afterwards by a
read-committed reader."""


def put_section(document: str, *, name: str, body: str) -> str:
    """Replaces one section, or adds it at the end of the document."""
    block = f"<!-- bench:{name} -->\n{body.strip()}\n<!-- /bench:{name} -->"
    pattern = re.compile(rf"<!-- bench:{name} -->.*?<!-- /bench:{name} -->", re.DOTALL)
    if pattern.search(document):
        return pattern.sub(lambda _match: block, document)
    return f"{(document or _HEADER).rstrip()}\n\n{block}\n"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table; the first column is text, the others are figures."""
    lines = [f"| {' | '.join(header)} |", f"|---|{'---:|' * (len(header) - 1)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def throughput_section(results: Sequence[throughput.Result]) -> str:
    """Rates and CPU, as figures and as ratios to the yardstick."""
    parts = [_THROUGHPUT_TEXT]
    for payload in dict.fromkeys(each.payload for each in results):
        of_payload = [each for each in results if each.payload == payload]
        parts.append(_throughput_table(of_payload, payload))
    return "\n\n".join(parts)


def _throughput_table(results: Sequence[throughput.Result], payload: str) -> str:
    base = next((each for each in results if each.name == YARDSTICK.name and each.copies), None)
    rows = []
    for each in results:
        if not each.copies:
            rows.append([each.name, "failed", *[""] * 7])
            continue
        rate = cpu = ""
        if base is not None:
            rate = f"{each.records_per_second / base.records_per_second:.2f} x"
            cpu = f"{each.cpu_us_per_record / base.cpu_us_per_record:.2f} x"
        rows.append(
            [
                each.name,
                f"{each.records_per_second / 1e3:.0f} k",
                rate,
                f"{each.cpu_us_per_record:.2f}",
                cpu,
                f"{each.cpu_us_per_record_whole:.2f}",
                f"{each.first_record_seconds:.1f} s",
                _megabytes(each.peak_rss_bytes),
                f"{each.missing} / {each.surplus}",
            ]
        )
    header = [
        f"records of {payload}", "rec/s", "to tuned MM2", "CPU µs/rec", "to tuned MM2", "whole",
        "first record", "memory", "lost / doubled",
    ]  # fmt: skip
    return table(header, rows)


def latency_section(results: Sequence[latency.Result]) -> str:
    """Percentiles."""
    rows = [
        [
            each.pace,
            each.name,
            *(["failed", "", "", "", "", ""] if each.failure else _latency_cells(each)),
        ]
        for each in results
    ]
    header = ["pace", "copier", "p50", "p99", "from", "steady after", "CPU of a core", "memory"]
    return (
        "## Latency\n\nFrom the writer's clock to a read-committed reader on the target, at a steady rate "
        "over 4 partitions. *From*: seconds after process start at which measuring began (MirrorMaker 2 is "
        "given longer, because it needs it). *Steady after*: the last slow second since process start.\n\n"
        + table(header, rows)
    )


def _latency_cells(each: latency.Result) -> list[str]:
    return [
        f"{each.p50_seconds * 1e3:.1f} ms",
        f"{each.p99_seconds * 1e3:.1f} ms",
        f"{each.settle_seconds:.0f} s",
        f"{each.steady_after_seconds:.0f} s",
        f"{each.cpu_percent:.1f} %",
        _megabytes(each.peak_rss_bytes),
    ]


def startup_section(results: Sequence[startup.Result]) -> str:
    """Starts and take-overs."""
    rows = [
        [
            each.what,
            each.name,
            "failed" if each.failure else f"{each.seconds:.2f} s",
            f"{min(each.measured):.2f} to {max(each.measured):.2f} s" if each.measured else "",
        ]
        for each in results
    ]
    return (
        "## Starting, restarting, taking over\n\nFrom process start (or from the signal) to a committed "
        "record on the target. Caught up: no record read for 2 s was older than 0.5 s.\n\n"
        + table(["what", "copier", "median", "least to most"], rows)
    )


def idle_section(results: Sequence[idle.Result]) -> str:
    """Idle cost."""
    rows = [
        [each.name, "failed", "", "", ""]
        if each.failure
        else [
            each.name,
            f"{each.cpu_percent:.2f} %",
            ", ".join(f"{used:.2f} %" for used in each.rounds),
            _megabytes(each.peak_rss_bytes),
            f"{each.ready_seconds:.1f} s",
        ]
        for each in results
    ]
    header = ["copier", "CPU of a core", "each round", "memory", "all target topics made after"]
    return f"## {idle.TOPICS} idle topics of 4 partitions\n\n" + table(header, rows)


def verdict_table(verdicts: Sequence[Verdict]) -> str:
    """Targets and whether they were reached."""
    if not verdicts:
        return ""
    rows = [
        [each.what, each.target, each.measured, "reached" if each.reached else "**not reached**"]
        for each in verdicts
    ]
    return table(["target", "asked", "measured", ""], rows)


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.0f} MB" if size_bytes else ""
