"""The charts of each part: which figures they show. Pure."""

from collections.abc import Callable, Sequence

import latency
import startup
import throughput
import wan
from cases import YARDSTICK
from charts import Bar, Group, bar_chart, short_name

Pictures = dict[str, tuple[str, str]]
"""By file name: what it shows, and the SVG."""


def of_throughput(results: Sequence[throughput.Result]) -> Pictures:
    """Rate and CPU beside the yardstick's, payload by payload."""
    measured = [each for each in results if each.copies]
    bases = {each.payload: each for each in measured if each.name == YARDSTICK.name}
    beside = [each for each in measured if each.payload in bases]

    def groups(bar: Callable[[throughput.Result, throughput.Result], Bar]) -> list[Group]:
        return [
            Group(
                payload,
                tuple(bar(each, base) for each in beside if each.payload == payload),
            )
            for payload, base in bases.items()
        ]

    def rate(each: throughput.Result, base: throughput.Result) -> Bar:
        ratio = each.records_per_second / base.records_per_second
        text = f"{ratio:.2f} x  ({each.records_per_second / 1e3:.0f} k/s)"
        return Bar(short_name(each.name), ratio, text)

    def cpu(each: throughput.Result, base: throughput.Result) -> Bar:
        ratio = each.cpu_us_per_record / base.cpu_us_per_record
        return Bar(
            short_name(each.name), ratio, f"{ratio:.3g} x  ({each.cpu_us_per_record:.2f} µs)"
        )

    titles = (
        "Records per second, tuned MirrorMaker 2 = 1 (longer is better)",
        "CPU per record, tuned MirrorMaker 2 = 1 (shorter is better, logarithmic)",
    )
    return {
        "bench-rate.svg": (titles[0], bar_chart(titles[0], groups(rate))),
        "bench-cpu.svg": (titles[1], bar_chart(titles[1], groups(cpu), logarithmic=True)),
    }


def of_latency(results: Sequence[latency.Result]) -> Pictures:
    """p50, p99 and p99.9 at each pace."""
    good = [each for each in results if not each.failure]
    points: list[tuple[str, Callable[[latency.Result], float]]] = [
        ("p50", lambda each: each.p50_seconds),
        ("p99", lambda each: each.p99_seconds),
        ("p99.9", lambda each: each.p999_seconds),
    ]
    groups = [
        Group(
            f"{pace}: {label}",
            tuple(
                Bar(short_name(each.name), value(each) * 1e3, f"{value(each) * 1e3:.1f} ms")
                for each in good
                if each.pace == pace
            ),
        )
        for pace in dict.fromkeys(each.pace for each in good)
        for label, value in points
    ]
    title = "Latency, writer to reader (shorter is better, logarithmic)"
    return {"bench-latency.svg": (title, bar_chart(title, groups, logarithmic=True))}


def of_starts(results: Sequence[startup.Result]) -> Pictures:
    """Medians."""
    groups = [
        Group(
            what.replace("first record after a ", "").replace("first new record after a ", ""),
            tuple(
                Bar(short_name(each.name), each.seconds, f"{each.seconds:.2f} s")
                for each in results
                if each.what == what and each.measured
            ),
        )
        for what in dict.fromkeys(each.what for each in results)
    ]
    title = "Seconds from process start to the first record (shorter is better)"
    return {"bench-starts.svg": (title, bar_chart(title, groups))}


def of_wan(results: Sequence[wan.Result]) -> Pictures:
    """Shares of the line's rate."""
    groups = [
        Group(
            f"{far} far away, {loss:.0%} loss",
            tuple(
                Bar(short_name(each.name), each.of_cap, f"{each.of_cap:.2f}")
                for each in results
                if (each.far, each.loss) == (far, loss) and not each.failure
            ),
        )
        for far, loss in dict.fromkeys((each.far, each.loss) for each in results)
    ]
    title = "A cluster 100 ms away: share of the line's rate (longer is better)"
    return {"bench-wan.svg": (title, bar_chart(title, groups))}
