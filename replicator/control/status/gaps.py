"""What ``gaps`` shows: source records that were given up, from the control topics."""

from datetime import UTC, datetime

from replicator.control.store.read import read_control
from replicator.errors import NotFoundError, ReplicatorError
from replicator.identifiers import JsonObject
from replicator.problem import Problem, problem_json, problem_of
from replicator.topology.plan import Plan, find_pair

CLIENT_ID = "replicator-gaps"


def list_gaps(plan: Plan, *, flow: str | None = None) -> JsonObject:
    """The object of ``gaps -o json``, newest first; silent targets are named under ``problems``.

    ``from`` and ``to`` are source offsets, half open; equal where it is not known how many records went.
    ``by`` is the operator who accepted it, empty where the policy ``onTruncation: report`` did.

    Raises:
        InputError: the topology has no such flow.
    """
    found: list[JsonObject] = []
    problems: list[Problem] = []
    for pair in plan.pairs if flow is None else (find_pair(plan, flow),):
        try:
            control = read_control(plan.topology, pair.target, client_id=CLIENT_ID)
        except NotFoundError:
            continue  # never applied: nothing was given up
        except ReplicatorError as error:
            problems.append(problem_of(error, subject=f"cluster:{pair.target.alias}"))
            continue
        source = pair.source.alias
        accepted = {
            (gap.topic, gap.partition, gap.lost.from_offset): gap.by for gap in control.gaps(source)
        }
        found.extend(
            {
                "flow": pair.id,
                "topic": gap.topic,
                "partition": gap.partition,
                "from": gap.lost.from_offset,
                "to": gap.lost.to_offset,
                "detail": gap.detail,
                "atMs": gap.at_ms,
                "at": datetime.fromtimestamp(gap.at_ms / 1000, UTC).isoformat(timespec="seconds"),
                "by": accepted.get((gap.topic, gap.partition, gap.lost.from_offset), ""),
            }
            for gap in control.gaps_taken(source)
        )
    newest = sorted(found, key=lambda gap: str(gap["at"]), reverse=True)
    return {"gaps": newest, "problems": [problem_json(problem) for problem in problems]}
