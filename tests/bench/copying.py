"""The throughput part: all cases once, then further rounds while there is time."""

import time
from collections.abc import Sequence

import cases
import throughput
from budget import Share, most_seconds
from contender import Contender
from payload import Payload
from throughput import Case, Say

from replicator.testing import LocalCluster, start_all
from replicator.testing.cluster.security import SecuritySetup

_LEAST_SECONDS = 5.0
_FILL_SECONDS = 7.0
# From the start to the first record, and the end.
_OVERHEAD_SECONDS = {True: 5.0, False: 14.0}


class Copying:
    """One run of the part."""

    def __init__(
        self,
        *,
        source: LocalCluster,
        target: LocalCluster,
        heap_megabytes: int,
        scale: float,
        longest_seconds: float,
        count_theirs: bool,
        say: Say,
    ) -> None:
        """``scale`` of the cases' records; ``longest_seconds`` is measured of a copy at most. ``count_theirs``:
        copies of the yardstick are counted too.
        """
        self._plain = (source, target)
        self._secured: tuple[LocalCluster, LocalCluster] | None = None
        self._heap_megabytes = heap_megabytes
        self._scale = scale
        self._longest = longest_seconds
        self._count_theirs = count_theirs
        self._say = say
        self.left_out: list[str] = []
        """Cases that did not fit into the time."""

    def run(
        self,
        planned: Sequence[tuple[Payload, Sequence[Contender]]],
        *,
        rounds: int,
        share: Share,
    ) -> list[throughput.Result]:
        """Every contender copies every case that fits, once or up to so many times, in turns."""
        done: list[Case] = []
        took: dict[str, float] = {}
        try:
            for number, (payload, contenders) in enumerate(planned):
                if done and not share.fits(_least(contenders)):
                    self.left_out.append(payload.label)
                    continue
                case = self._case(payload, contenders)
                done.append(case)
                began = time.monotonic()
                left = [each for _, those in planned[number + 1 :] for each in those]
                self._round(case, case.contenders, later=left, share=share)
                took[payload.label] = time.monotonic() - began
            for turn in range(1, rounds):
                for case in done:
                    if share.fits(took[case.payload.label]):
                        shift = turn % len(case.contenders)
                        order = (*case.contenders[shift:], *case.contenders[:shift])
                        self._round(case, order, later=[], share=share)
            return [result for case in done for result in case.results()]
        finally:
            for case in done:
                case.close()
            for cluster in self._secured or ():
                cluster.stop()

    def _round(
        self,
        case: Case,
        order: Sequence[Contender],
        *,
        later: Sequence[Contender],
        share: Share,
    ) -> None:
        waiting = [*order, *later]
        for contender in order:
            overhead = sum(_OVERHEAD_SECONDS[cases.is_ours(each)] for each in waiting)
            seconds = most_seconds(
                left=share.left - overhead,
                runs=len(waiting),
                overhead=0.0,
                least=_LEAST_SECONDS,
                longest=self._longest,
            )
            counted = self._count_theirs or cases.is_ours(contender)
            case.run(contender, most_seconds=seconds, counted=counted)
            waiting.pop(0)

    def _case(self, payload: Payload, contenders: Sequence[Contender]) -> Case:
        source, target = self._clusters(payload)
        return Case(
            source=source,
            target=target,
            payload=payload.scaled(self._scale),
            contenders=contenders,
            say=self._say,
        )

    def _clusters(self, payload: Payload) -> tuple[LocalCluster, LocalCluster]:
        if not payload.secured:
            return self._plain
        if self._secured is None:
            self._secured = (self._secured_cluster("source"), self._secured_cluster("target"))
            start_all(self._secured)
        return self._secured

    def _secured_cluster(self, side: str) -> LocalCluster:
        return LocalCluster(
            f"bench-{side}-tls",
            jvm="throughput",
            heap_megabytes=self._heap_megabytes,
            security=SecuritySetup.tls(),
        )


def _least(contenders: Sequence[Contender]) -> float:
    return _FILL_SECONDS + sum(
        _LEAST_SECONDS + _OVERHEAD_SECONDS[cases.is_ours(each)] for each in contenders
    )
