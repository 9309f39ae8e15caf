"""Results as markdown, written between markers so that notes around them survive. Pure text."""

import re
from collections.abc import Mapping, Sequence

import idle
import latency
import startup
import throughput
import wan
from cases import YARDSTICK
from judging import Verdict

_HEADER = """\
# Benchmarks

`make bench` measures everything below anew and rewrites what stands between the markers; the text
outside them is written by people and stays.
"""
_THROUGHPUT_TEXT = """\
## Throughput

A full topic is copied to a fresh topic by one contender after the other; medians of the rounds. 4 partitions and
source batches of 250 KiB without compression, unless the payload says otherwise. Rate and CPU are of the steady part (30 % to
95 % of the records); CPU is that of the whole process tree, *whole* includes start and end. *Cut*: ended when its
time was over, so not counted; what was copied whole is counted afterwards by a read-committed reader."""


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


def throughput_section(
    results: Sequence[throughput.Result], *, left_out: Sequence[str], images: str
) -> str:
    """Rates and CPU, as figures and as ratios to the yardstick."""
    parts = [_THROUGHPUT_TEXT, images]
    for payload in dict.fromkeys(each.payload for each in results):
        of_payload = [each for each in results if each.payload == payload]
        parts.append(_throughput_table(of_payload, payload))
    if left_out:
        parts.append(f"Left out because the run's time was over: {'; '.join(left_out)}.")
    return "\n\n".join(filter(None, parts))


def _throughput_table(results: Sequence[throughput.Result], payload: str) -> str:
    base = next((each for each in results if each.name == YARDSTICK.name and each.copies), None)
    rows = []
    for each in results:
        if not each.copies:
            rows.append([each.name, "failed", *[""] * 8])
            continue
        rate = cpu = ""
        if base is not None:
            rate = f"{each.records_per_second / base.records_per_second:.2f} x"
            cpu = f"{each.cpu_us_per_record / base.cpu_us_per_record:.3f} x"
        rows.append(
            [
                each.name + (" (a round failed)" if each.failure else ""),
                f"{each.records_per_second / 1e3:.0f} k",
                rate,
                f"{each.cpu_us_per_record:.2f}",
                cpu,
                f"{each.cpu_us_per_record_whole:.2f}",
                f"{each.first_record_seconds:.1f} s",
                _megabytes(each.peak_rss_bytes),
                str(len(each.copies)),
                f"{each.missing} / {each.surplus}" if each.counted else "cut",
            ]
        )
    header = [
        payload, "rec/s", "to tuned MM2", "CPU µs/rec", "to tuned MM2", "whole",
        "first record", "memory", "rounds", "lost / doubled",
    ]  # fmt: skip
    return table(header, rows)


def latency_section(results: Sequence[latency.Result], *, images: str) -> str:
    """Percentiles of a target of one broker."""
    text = (
        "## Latency\n\nFrom the writer's clock to a read-committed reader on the target, at a steady rate over 4 partitions; "
        "medians of the rounds. *The source read directly* is the floor: the same writer and reader, and nothing in "
        "between. *Steady after*: the last slow second since process start."
    )
    return _delays(text, results, images)


def three_brokers_section(results: Sequence[latency.Result], *, partitions: int) -> str:
    """Percentiles of a target whose partitions have several leaders, and replicas."""
    text = (
        "## Latency where the target has three brokers\n\nThe same, exactly-once, over "
        f"{partitions} partitions with three replicas each on a target of three brokers; the source has one. All four share the machine's "
        "cores, so these are not to be compared with the table above. Measured by `make bench` only."
    )
    return _delays(text, results, "")


def _delays(text: str, results: Sequence[latency.Result], images: str) -> str:
    rows = [
        [
            each.pace,
            each.name,
            *(["failed", *[""] * 6] if each.failure else _latency_cells(each)),
        ]
        for each in results
    ]
    header = ["pace", "copier", "p50", "p99", "p99.9", "steady after", "CPU of a core", "memory", "rounds"]  # fmt: skip
    plans = {each.name: each.settle_seconds for each in results if not each.failure}
    begun = ", ".join(f"{_short(name)} {seconds:.0f} s" for name, seconds in plans.items())
    waited = (
        "Measuring began so long after the start of the process (MirrorMaker 2 is given longer, "
        f"because it needs it): {begun}."
    )
    return "\n\n".join(filter(None, [text, images, table(header, rows), waited]))


def _latency_cells(each: latency.Result) -> list[str]:
    return [
        f"{each.p50_seconds * 1e3:.1f} ms",
        f"{each.p99_seconds * 1e3:.1f} ms",
        f"{each.p999_seconds * 1e3:.1f} ms",
        f"{each.steady_after_seconds:.0f} s",
        f"{each.cpu_percent:.1f} %",
        _megabytes(each.peak_rss_bytes),
        str(each.rounds),
    ]


def starts_section(results: Sequence[startup.Result], *, images: str = "") -> str:
    """Starts."""
    return "\n\n".join(
        filter(
            None,
            [
                "## Starting and restarting\n\nFrom process start to a committed record on the target.",
                images,
                _starts_table(results),
            ],
        )
    )


def takeovers_section(results: Sequence[startup.Result]) -> str:
    """Kills and take-overs."""
    return (
        "## Killed, restarted, taken over\n\nFrom the signal to a committed record on the target. Caught up: no record read "
        "for 2 s was older than 0.5 s. Measured by `make bench` only.\n\n" + _starts_table(results)
    )


def _starts_table(results: Sequence[startup.Result]) -> str:
    rows = [
        [
            each.what,
            each.name,
            f"{each.seconds:.2f} s" if each.measured else "failed",
            f"{min(each.measured):.2f} to {max(each.measured):.2f} s" if each.measured else "",
            str(len(each.measured)),
        ]
        for each in sorted(results, key=lambda each: each.what)
    ]
    return table(["what", "copier", "median", "least to most", "rounds"], rows)


def idle_section(results: Sequence[idle.Result], *, seconds: float) -> str:
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
    heading = f"## {idle.TOPICS} idle topics of 4 partitions"
    return f"{heading}\n\nOver {seconds:.0f} s in each round.\n\n" + table(header, rows)


def wan_section(results: Sequence[wan.Result], *, images: str = "") -> str:
    """Long lines."""
    rows = [
        [
            each.far,
            f"{each.loss:.0%}",
            each.name,
            *(
                ["failed", "", ""]
                if each.failure
                else [
                    f"{each.bytes_per_second / 1e6:.2f} MB/s",
                    f"{each.of_cap:.2f}",
                    f"{each.to_plain:.1f} x",
                ]
            ),
        ]
        for each in results
    ]
    text = (
        f"## A cluster {wan.ROUND_TRIP_SECONDS * 1000:.0f} ms away\n\nOver the test kit's line (`WanLine`) of {wan.RATE / 1e6:g} MB/s, packets of 1500 bytes, "
        f"loss in both directions; {wan.PARTITIONS} partitions, records of 1 KB in batches of 16 KB; brokers that leave their socket buffers to the kernel. "
        "*One plain connection* is a TCP connection that carries zeros in the same direction, with the kernel's usual congestion control."
    )
    shown = table(
        ["far away", "loss", "who", "rate", "of the line's rate", "to one plain connection"], rows
    )
    return "\n\n".join(filter(None, [text, images, shown]))


def targets_section(verdicts: Mapping[str, Sequence[Verdict]]) -> str:
    """All targets of a run."""
    every = [each for those in verdicts.values() for each in those]
    rows = [
        [
            each.what,
            each.target,
            each.measured,
            "reached" if each.reached else "**not reached**",
            "" if each.reached else each.bound,
        ]
        for each in every
    ]
    reached = sum(each.reached for each in every)
    return (
        f"## How far the targets are reached\n\n{reached} of {len(every)}, all from one run. Where one is not reached, "
        "the last column says what bounds it, if that is known; more under *Where the time goes*.\n\n"
        + table(["target", "asked", "measured", "", "bound by"], rows)
    )


def _short(name: str) -> str:
    return name.removeprefix("replicator ").removesuffix(", 1 lane")


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.0f} MB" if size_bytes else ""
