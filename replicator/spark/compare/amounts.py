"""How much a comparison reads on both sides."""

from collections.abc import Iterable

from replicator.spark.base.amounts import Amount, kafka_amount
from replicator.spark.base.ranges import Range
from replicator.spark.compare.cases import Case
from replicator.topology.plan import PairPlan
from replicator.wire.requests.log_dirs import sizes_on_disk


def compared_amount(pair: PairPlan, cases: Iterable[Case]) -> Amount:
    """Offsets of both sides and their part of the logs' bytes; these are unknown where brokers do not tell."""
    listed = list(cases)
    sides = (
        kafka_amount(
            [Range(c.facts.topic, c.facts.partition, c.source_from, c.source_to) for c in listed],
            sizes_on_disk(pair.source, {c.facts.topic for c in listed}),
            {
                (c.facts.topic, c.facts.partition): c.facts.source.end - c.facts.source.start
                for c in listed
            },
        ),
        kafka_amount(
            [
                Range(c.facts.target_topic, c.facts.partition, c.target_from, c.target_to)
                for c in listed
            ],
            sizes_on_disk(pair.target, {c.facts.target_topic for c in listed}),
            {
                (c.facts.target_topic, c.facts.partition): c.facts.target.end - c.facts.target.start
                for c in listed
            },
        ),
    )
    return sides[0].plus(sides[1])
