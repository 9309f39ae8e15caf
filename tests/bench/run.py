"""Measures the product against MirrorMaker 2 on the same brokers.

``python tests/bench/run.py [--quick] [--only throughput,latency,startup,idle] [--out FILE]``

Figures are printed as markdown, or with ``--out`` written between the markers of that file
(``make bench`` writes docs/benchmarks.md).

The program boots its own brokers (see replicator.testing) and ends every process it started. Run it
on a machine that does nothing else; the report states the load average it began with.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import idle
import judging
import latency
import report
import startup
import throughput
from bare_loop import BareLoop
from contender import Contender
from judging import (
    AT_LEAST_ONCE,
    EXACTLY_ONCE,
    EXACTLY_ONCE_AUTO,
    FAST,
    LARGE,
    NAMED,
    SLOW,
    SMALL,
    YARDSTICK,
)
from machine import command_line, facts
from mm2 import MirrorMaker2
from warm_up import warm_up

from replicator.testing import LocalCluster, start_all

_SECTIONS = ("throughput", "latency", "startup", "idle")
_BROKER_HEAP_MEGABYTES = 1024
_MM2_DEFAULT = MirrorMaker2("default")
_MM2_EXACTLY_ONCE = MirrorMaker2("default", "exactly-once")


@dataclass(frozen=True, slots=True)
class Bench:
    """The brokers of one run, and how thorough it is."""

    source: LocalCluster
    target: LocalCluster
    quick: bool

    def throughput(self) -> str:
        """Copying full topics."""
        rounds = 1 if self.quick else 3
        share = 0.4 if self.quick else 1.0
        first = [
            throughput.Entry(contender, rounds)
            for contender in (YARDSTICK, EXACTLY_ONCE, BareLoop())
        ]
        others = [
            throughput.Entry(contender, 1)
            for contender in (
                EXACTLY_ONCE_AUTO,
                AT_LEAST_ONCE,
                MirrorMaker2("tuned", "exactly-once"),
                _MM2_DEFAULT,
            )
        ]
        results = []
        for payload in (SMALL, LARGE):
            sized = replace(payload, records=int(payload.records * share))
            entries = first if self.quick else [*first, *others]
            results += throughput.measure(
                source=self.source, target=self.target, payload=sized, entries=entries, say=_say
            )
        return _join(
            report.throughput_section(results), report.verdict_table(judging.of_throughput(results))
        )

    def latency(self) -> str:
        """Records at a steady rate."""
        ours = latency.Plan(settle_seconds=5, measure_seconds=8 if self.quick else 20)
        theirs = latency.Plan(
            settle_seconds=20 if self.quick else 50, measure_seconds=ours.measure_seconds
        )
        entries: list[tuple[Contender, latency.Plan]]
        entries = [(AT_LEAST_ONCE, ours), (EXACTLY_ONCE, ours), (_MM2_DEFAULT, theirs)]
        if not self.quick:
            entries += [(_MM2_EXACTLY_ONCE, theirs), (YARDSTICK, theirs)]
        results = []
        for pace in (SLOW, FAST):
            results += latency.measure(
                source=self.source, target=self.target, pace=pace, entries=entries, say=_say
            )
        return _join(
            report.latency_section(results), report.verdict_table(judging.of_latency(results))
        )

    def startup(self) -> str:
        """Starts, restarts, take-overs."""
        others = () if self.quick else (_MM2_DEFAULT,)
        results = startup.measure(
            source=self.source,
            target=self.target,
            contenders=(EXACTLY_ONCE, *others),
            restarted=(NAMED, *others),
            workers=(EXACTLY_ONCE_AUTO,),
            rounds=3,
            say=_say,
        )
        return _join(
            report.startup_section(results), report.verdict_table(judging.of_startup(results))
        )

    def idle(self) -> str:
        """Topics that nobody writes to."""
        results = idle.measure(
            source=self.source,
            target=self.target,
            contenders=(EXACTLY_ONCE_AUTO, *(() if self.quick else (_MM2_DEFAULT,))),
            rounds=1 if self.quick else 2,
            # Both look around more while their topics are new.
            settle_seconds=8 if self.quick else 60,
            # A whole minute: half of one would count twice what is done once in each.
            measure_seconds=15 if self.quick else 60,
            say=_say,
        )
        return _join(report.idle_section(results), report.verdict_table(judging.of_idle(results)))


def main() -> int:
    """Runs the chosen sections; each is written as soon as it is measured."""
    arguments = _parser().parse_args()
    chosen = [name.strip() for name in arguments.only.split(",")]
    unknown = sorted(set(chosen) - set(_SECTIONS))
    if unknown:
        _say(f"unknown section: {', '.join(unknown)}; there are {', '.join(_SECTIONS)}")
        return 2
    source, target = (
        LocalCluster(name, jvm="throughput", heap_megabytes=_BROKER_HEAP_MEGABYTES)
        for name in ("bench-source", "bench-target")
    )
    out: Path | None = arguments.out
    machine = facts(command=command_line(), full=not arguments.quick)
    start_all([source, target])
    warm_up(source)
    warm_up(target)
    try:
        bench = Bench(source, target, quick=arguments.quick)
        sections: dict[str, Callable[[], str]] = {
            "throughput": bench.throughput,
            "latency": bench.latency,
            "startup": bench.startup,
            "idle": bench.idle,
        }
        for name in chosen:
            _say(f"{name}:")
            body = f"{sections[name]()}\n\n{machine}"
            if out is None:
                _say(f"\n{body}\n")
            else:
                document = out.read_text() if out.exists() else ""
                out.write_text(report.put_section(document, name=name, body=body))
                _say(f"written: {name} in {out}")
    finally:
        source.stop()
        target.stop()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measures the product against MirrorMaker 2.")
    parser.add_argument("--quick", action="store_true", help="about ten minutes, noisier")
    parser.add_argument("--only", default=",".join(_SECTIONS), help="sections, comma-separated")
    parser.add_argument("--out", type=Path, help="markdown file; default: print only")
    return parser


def _join(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
