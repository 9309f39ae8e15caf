"""Which flows Spark runs instead of workers. Pure; known before Spark starts."""

from replicator.errors import InputError
from replicator.topology.plan import FlowPlan, PairPlan


def require_spark_runtime(pair: PairPlan) -> None:
    """Checks that the topology file gives the flow to Spark.

    Raises:
        InputError: Spark runs no link of the flow.
    """
    if not streamed_flows(pair):
        raise InputError(
            "workers run its links",
            subject=str(pair.id),
            remedy="Set 'runtime: spark' on a link of the topology, then start the stream.",
        )


def streamed_flows(pair: PairPlan) -> tuple[FlowPlan, ...]:
    """The flows of a pair that Spark runs."""
    return tuple(flow for flow in pair.flows if flow.policy.runtime == "spark")
