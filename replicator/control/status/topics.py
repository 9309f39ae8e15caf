"""What ``topics`` shows: what is replicated, from the control topics."""

from replicator.clock import Clock, SystemClock
from replicator.control.store.read import read_control
from replicator.control.store.worker_record import shown_engine
from replicator.errors import NotFoundError, ReplicatorError
from replicator.identifiers import JsonObject, is_canary_topic
from replicator.policy.copies.engines import FlowEngine
from replicator.problem import Problem, problem_json, problem_of
from replicator.topology.plan import Plan, find_pair

CLIENT_ID = "replicator-topics"


def list_topics(plan: Plan, *, flow: str | None = None, clock: Clock | None = None) -> JsonObject:
    """The object of ``topics -o json``; targets that do not answer are named under ``problems``.

    Raises:
        InputError: the topology has no such flow.
    """
    now_ms = round((clock or SystemClock()).now() * 1000)
    topics: list[JsonObject] = []
    problems: list[Problem] = []
    for pair in plan.pairs if flow is None else (find_pair(plan, flow),):
        try:
            control = read_control(plan.topology, pair.target, client_id=CLIENT_ID)
        except NotFoundError:
            continue  # never applied: nothing is replicated
        except ReplicatorError as error:
            problems.append(problem_of(error, subject=f"cluster:{pair.target.alias}"))
            continue
        engines = {
            str(each.link): shown_engine(control, each, now_ms=now_ms) for each in pair.flows
        }
        rests = FlowEngine("records", "resting")
        topics.extend(
            {
                "flow": pair.id,
                "link": record.link,
                "source": record.topic,
                "target": record.target,
                "partitions": record.partitions,
                "engine": engines.get(record.link, rests).engine,
                "engineReason": engines.get(record.link, rests).reason,
                "state": record.state,
            }
            for record in control.topics(pair.source.alias)
            if not is_canary_topic(record.topic)
        )
    return {"topics": topics, "problems": [problem_json(problem) for problem in problems]}
