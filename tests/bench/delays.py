"""The latency part: every contender at every pace, in turns, as often as there is time."""

from collections import defaultdict
from collections.abc import Sequence

import cases
import latency
from budget import Share, most_seconds
from contender import Contender
from load import PARTITIONS
from throughput import Say

from replicator.testing import LocalCluster

_LEAST_SECONDS = 5.0
# Until records can be measured, and the end; MirrorMaker 2 is given longer, because it needs it.
_OURS_SECONDS, _THEIRS_SECONDS = 5.0, {True: 16.0, False: 45.0}
_ENDING_SECONDS = 3.0
_FLOOR_SECONDS = 4.0


def measure(
    *,
    source: LocalCluster,
    target: LocalCluster,
    contenders: Sequence[Contender],
    quick: bool,
    rounds: int,
    share: Share,
    partitions: int = PARTITIONS,
    paces: Sequence[latency.Pace] = (cases.SLOW, cases.FAST),
    longest_seconds: float,
    warm_up_seconds: float = 5.0,
    say: Say,
) -> list[latency.Result]:
    """Medians of the rounds that fitted; the first pace at least.

    ``warm_up_seconds``: of a first turn that is not counted.
    """
    found: defaultdict[tuple[str, str], list[latency.Result]] = defaultdict(list)
    settle = {
        each.name: _OURS_SECONDS if cases.is_ours(each) else _THEIRS_SECONDS[quick]
        for each in contenders
    }
    # Brokers compile their code for small records under the first copier: seen at a p99 of 52 ms, and
    # of 6 ms when the same copier came again. Nobody's figure pays for that.
    say("  a turn to warm up, not counted:")
    latency.measure_one(
        source=source,
        target=target,
        pace=paces[0],
        contender=contenders[0],
        plan=latency.Plan(settle[contenders[0].name], warm_up_seconds),
        say=say,
        partitions=partitions,
    )
    fixed = sum(settle.values()) + _ENDING_SECONDS * len(contenders) + _FLOOR_SECONDS
    runs = len(paces) * (len(contenders) + 1)
    one_round = fixed * len(paces) + runs * _LEAST_SECONDS
    fitting = max(1, min(rounds, int(share.left / one_round)))
    seconds = most_seconds(
        left=share.left / fitting - fixed * len(paces),
        runs=runs,
        overhead=0.0,
        least=_LEAST_SECONDS,
        longest=longest_seconds,
    )
    for turn in range(fitting):
        if turn and not share.fits(one_round):
            break
        shift = turn % len(contenders)
        for pace in paces:
            if found and not share.left:
                break
            floor = latency.measure_source(
                source, pace, seconds=seconds, say=say, partitions=partitions
            )
            found[pace.label, floor.name].append(floor)
            for contender in (*contenders[shift:], *contenders[:shift]):
                result = latency.measure_one(
                    source=source,
                    target=target,
                    pace=pace,
                    contender=contender,
                    plan=latency.Plan(settle[contender.name], seconds),
                    say=say,
                    partitions=partitions,
                )
                found[pace.label, contender.name].append(result)
    order = [latency.FLOOR, *(each.name for each in contenders)]
    return [
        latency.medians(found[pace.label, name])
        for pace in paces
        for name in order
        if found[pace.label, name]
    ]
