"""Measures both engines against MirrorMaker 2 on the same brokers.

``python tests/bench/run.py [--quick] [--only latency,starts,…] [--minutes N] [--scale F] [--write FILE]``

Figures are printed as markdown, or with ``--write`` put between the markers of that file, with charts
in ``images`` beside it (``make bench`` and ``make bench-quick`` write docs/benchmarks.md). A run ends within its
time: each part has a share of it and drops rounds, never contenders.

The program boots its own brokers (see replicator.testing) and ends every process it started. Run it
on a machine that does nothing else; the report states the load average it began with.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import cases
import delays
import idle
import judging
import pictures
import report
import startup
import wan
from budget import Budget, Share
from copying import Copying
from judging import Verdict
from machine import command_line, facts
from warm_up import warm_up

from replicator.testing import LocalCluster, start_all
from replicator.testing.wan.wan_line import unavailable

# In the order in which they run: delays late, because brokers compile for minutes; what is left over goes to throughput, which
# can use any time.
_WEIGHTS = {
    False: {
        "starts": 5.0, "takeovers": 10.0, "idle": 8.0, "wan": 5.0, "latency": 24.0, "three-brokers": 5.0, "throughput": 31.0,
    },
    True: {"starts": 0.9, "idle": 1.6, "wan": 1.5, "latency": 3.4, "throughput": 7.2},
}  # fmt: skip
_MINUTES = {False: 87.0, True: 14.2}
_BROKER_HEAP_MEGABYTES = 1024
_PARTITIONS_ON_THREE = 12


@dataclass(slots=True)
class Page:
    """Where figures go: the terminal, or a markdown file with its images."""

    file: Path | None
    machine: str
    verdicts: dict[str, list[Verdict]] = field(default_factory=dict)

    def images(self, drawn: pictures.Pictures) -> str:
        """Writes charts and returns their links; nothing where nothing is written."""
        if self.file is None:
            return ""
        folder = self.file.parent / "images"
        folder.mkdir(exist_ok=True)
        for name, (_, svg) in drawn.items():
            (folder / name).write_text(svg)
        return "\n\n".join(f"![{title}](images/{name})" for name, (title, _) in drawn.items())

    def put(self, name: str, body: str, verdicts: list[Verdict] | None = None) -> None:
        """Writes or prints one section."""
        if verdicts:
            self.verdicts[name] = verdicts
        text = f"{body}\n\n{self.machine}"
        if self.file is None:
            _say(f"\n{text}\n")
            return
        document = self.file.read_text() if self.file.exists() else ""
        self.file.write_text(report.put_section(document, name=name, body=text))
        _say(f"written: {name} in {self.file}")


@dataclass(frozen=True, slots=True)
class Bench:
    """The brokers of one run, and how thorough it is."""

    source: LocalCluster
    target: LocalCluster
    page: Page
    quick: bool
    scale: float
    rounds: int
    payload: str

    def throughput(self, share: Share) -> None:
        """Copying full topics."""
        copying = Copying(
            source=self.source,
            target=self.target,
            heap_megabytes=_BROKER_HEAP_MEGABYTES,
            scale=self.scale,
            longest_seconds=7.0 if self.quick else 20.0,
            count_theirs=not self.quick,
            say=_say,
        )
        planned = cases.throughput_cases(quick=self.quick, only=self.payload)
        results = copying.run(planned, rounds=self.rounds, share=share)
        images = self.page.images(pictures.of_throughput(results))
        body = report.throughput_section(results, left_out=copying.left_out, images=images)
        self.page.put("throughput", body, judging.of_throughput(results))

    def latency(self, share: Share) -> None:
        """Records at a steady rate."""
        results = delays.measure(
            source=self.source,
            target=self.target,
            contenders=cases.latency_contenders(quick=self.quick),
            quick=self.quick,
            rounds=self.rounds,
            share=share,
            longest_seconds=20.0,
            say=_say,
        )
        images = self.page.images(pictures.of_latency(results))
        body = report.latency_section(results, images=images)
        self.page.put("latency", body, judging.of_latency(results))

    def three_brokers(self, share: Share) -> None:
        """The same with a target of three brokers, which are started for it."""
        target = LocalCluster(
            "bench-of-three", brokers=3, jvm="throughput",
            heap_megabytes=_BROKER_HEAP_MEGABYTES // 2,
        )  # fmt: skip
        target.start()
        try:
            warm_up(target)
            results = delays.measure(
                source=self.source,
                target=target,
                contenders=cases.contenders_of_three_brokers(),
                quick=self.quick,
                rounds=self.rounds,
                share=share,
                partitions=_PARTITIONS_ON_THREE,
                # More leaves four brokers on two cores nothing to answer with.
                paces=(cases.SLOW,),
                # These are new, and compile for a minute.
                warm_up_seconds=45.0,
                longest_seconds=20.0,
                say=_say,
            )
        finally:
            target.stop()
        body = report.three_brokers_section(results, partitions=_PARTITIONS_ON_THREE)
        self.page.put("three-brokers", body, judging.of_latency(results, where=", three brokers"))

    def starts(self, share: Share) -> None:
        """Cold and warm starts."""
        results = startup.measure_starts(
            source=self.source,
            target=self.target,
            contenders=(cases.BATCHES, cases.RECORDS, cases.MM2_DEFAULT),
            rounds=self.rounds,
            share=share,
            say=_say,
        )
        images = self.page.images(pictures.of_starts(results))
        self.page.put("starts", report.starts_section(results, images=images), judging.of_starts(results))  # fmt: skip

    def takeovers(self, share: Share) -> None:
        """Workers that are killed."""
        results = startup.measure_takeovers(
            source=self.source,
            target=self.target,
            restarted=(cases.BATCHES_NAMED, cases.RECORDS_NAMED, cases.MM2_DEFAULT),
            workers=(cases.BATCHES_AUTO_LANES, cases.RECORDS_AUTO_LANES),
            rounds=self.rounds,
            share=share,
            say=_say,
        )
        self.page.put("takeovers", report.takeovers_section(results), judging.of_starts(results))

    def idle(self, share: Share) -> None:
        """Topics that nobody writes to."""
        # A whole minute: half of one would count twice what is done once in each.
        seconds = 15.0 if self.quick else 60.0
        ours = (cases.BATCHES_AUTO_LANES,) if self.quick else (cases.BATCHES_AUTO_LANES, cases.RECORDS_AUTO_LANES)  # fmt: skip
        results = idle.measure(
            source=self.source,
            target=self.target,
            contenders=(*ours, cases.MM2_DEFAULT),
            rounds=1 if self.quick else 2,
            # Both look around more while their topics are new.
            settle_seconds=5 if self.quick else 60,
            measure_seconds=seconds,
            share=share,
            say=_say,
        )
        body = report.idle_section(results, seconds=seconds)
        self.page.put("idle", body, judging.of_idle(results))

    def wan(self, share: Share) -> None:
        """A source far away; left out where the machine has no long lines."""
        reason = unavailable()
        if reason:
            _say(f"  left out: {reason}")
            return
        ours = [cases.BATCHES, cases.RECORDS]
        if not self.quick:
            ours += [cases.BATCHES_AT_LEAST_ONCE, cases.RECORDS_AT_LEAST_ONCE]
        # Quick runs look at one side; the target's part is half of what each loss takes.
        measured = 2 * (len(ours) + 1) * (1 if self.quick else 1.5)
        seconds = min(30.0, max(6.0, (share.left - 15) / measured - 7))
        results = wan.measure(
            near=self.target, contenders=ours, losses=(0.0, 0.01), seconds=seconds, say=_say
        )
        if not self.quick:
            results += wan.measure(
                near=self.source, far="target", contenders=ours[:2], losses=(0.0, 0.01),
                seconds=seconds, say=_say,
            )  # fmt: skip
        images = self.page.images(pictures.of_wan(results))
        self.page.put("wan", report.wan_section(results, images=images), judging.of_wan(results))


def main() -> int:
    """Runs the chosen parts; each is written as soon as it is measured."""
    given = _parser().parse_args()
    weights = _WEIGHTS[given.quick]
    chosen = [name.strip() for name in given.only.split(",")] if given.only else list(weights)
    known = list(_WEIGHTS[False])
    unknown = sorted(set(chosen) - set(known))
    if unknown:
        _say(f"unknown part: {', '.join(unknown)}; there are {', '.join(known)}")
        return 2
    if not cases.throughput_cases(quick=given.quick, only=given.payload):
        _say(f"no full topic has {given.payload!r} in its name; see tests/bench/cases.py")
        return 2
    minutes = given.minutes or _MINUTES[given.quick]
    budget = Budget(
        seconds=minutes * 60,
        weights={name: weights.get(name, 1.0) for name in known if name in chosen},
        now=time.monotonic,
    )
    page = Page(given.write, facts(command=command_line(), full=not given.quick))
    source, target = (
        LocalCluster(name, jvm="throughput", heap_megabytes=_BROKER_HEAP_MEGABYTES)
        for name in ("bench-source", "bench-target")
    )
    start_all([source, target])
    try:
        warm_up(source)
        warm_up(target)
        bench = Bench(
            source, target, page, quick=given.quick, scale=given.scale, rounds=given.rounds,
            payload=given.payload,
        )  # fmt: skip
        parts: Mapping[str, Callable[[Share], None]] = {
            "latency": bench.latency,
            "three-brokers": bench.three_brokers,
            "starts": bench.starts,
            "takeovers": bench.takeovers,
            "idle": bench.idle,
            "wan": bench.wan,
            "throughput": bench.throughput,
        }
        failed = [name for name in known if name in chosen and not _done(name, parts[name], budget)]
    finally:
        source.stop()
        target.stop()
    if page.verdicts:
        page.put("targets", report.targets_section(page.verdicts))
    _say(f"done; failed: {', '.join(failed) or 'nothing'}")
    return 1 if failed else 0


def _done(name: str, part: Callable[[Share], None], budget: Budget) -> bool:
    share = budget.share(name)
    began = time.monotonic()
    _say(f"{name}: {share.left:.0f} s")
    try:
        part(share)
    except Exception as error:  # noqa: BLE001 # one part that fails must not cost the others' figures
        _say(f"  FAILED: {type(error).__name__}: {error}")
        return False
    finally:
        _say(f"{name} took {time.monotonic() - began:.0f} s")
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measures both engines against MirrorMaker 2.")
    parser.add_argument("--quick", action="store_true", help="within a quarter of an hour, noisier")
    parser.add_argument("--only", default="", help="parts, comma-separated; default: all")
    parser.add_argument("--minutes", type=float, help="most that the run may take")
    parser.add_argument(
        "--payload", default="", help="part of the name of the full topics to copy; default: all"
    )
    parser.add_argument("--rounds", type=int, default=3, help="most rounds of each part")
    parser.add_argument("--scale", type=float, default=1.0, help="of the records of full topics")
    parser.add_argument("--write", type=Path, help="markdown file; default: print only")
    return parser


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
