"""What ``apply`` does: what ``plan`` showed, pair by pair, with progress."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from replicator.clock import Clock
from replicator.control.controller.bootstrap import bootstrap_pair
from replicator.control.controller.controller import PairController
from replicator.control.operator.plan import Forecast
from replicator.control.tasks.sync.acl_sync import AclSync
from replicator.errors import RefusedError, ReplicatorError
from replicator.identifiers import JsonObject
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.problem import Problem, problem_json
from replicator.topology.plan import PairPlan, Plan

CLIENT_ID = "replicator-apply"


@dataclass(frozen=True, slots=True)
class Applied:
    """What was done, and what could not be."""

    done: tuple[str, ...]
    problems: tuple[Problem, ...]

    def as_json(self) -> JsonObject:
        """The object of ``apply -o json``."""
        return {
            "done": list(self.done),
            "problems": [problem_json(problem) for problem in self.problems],
        }


def refuse_blocked(plan: Forecast) -> None:
    """Nothing is touched while an alias or a broker is not what it must be.

    Raises:
        RefusedError: names the first such problem.
    """
    for pair in plan.pairs:
        if pair.blocked:
            problem = pair.problems[0]
            raise RefusedError(problem.detail, subject=problem.subject, remedy=problem.remedy)


def apply_plan(
    plan: Plan, *, clock: Clock, progress: Callable[[str], None] = lambda _: None
) -> Applied:
    """Brings every pair to what the topology wants, one after the other. Blocking.

    A pair whose clusters do not answer becomes a problem; the others are done all the same.
    """
    done: list[str] = []
    problems: list[Problem] = []

    def note(line: str) -> None:
        done.append(line)
        progress(line)

    for pair in plan.pairs:
        try:
            problems.extend(apply_pair(plan, pair, clock=clock, note=note))
        except ReplicatorError as error:
            problems.append(
                Problem(error.code, error.subject or str(pair.id), error.message, error.remedy)
            )
    return Applied(tuple(done), tuple(dict.fromkeys(problems)))


def apply_pair(
    plan: Plan, pair: PairPlan, *, clock: Clock, note: Callable[[str], None]
) -> tuple[Problem, ...]:
    """Brings one pair to what the topology wants; ``note`` is called with each thing done. Blocking.

    Raises:
        ReplicatorError: a cluster does not answer or refuses; what was done stays done.
    """
    with (
        ClusterAdmin(pair.source, client_id=CLIENT_ID) as source,
        ClusterAdmin(pair.target, client_id=CLIENT_ID) as target,
    ):
        bootstrap_pair(
            plan=plan, pair=pair, source_admin=source, target_admin=target,
            clock=clock, client_id=CLIENT_ID,
        )  # fmt: skip
        controller = PairController(
            pair, plan, source_admin=source, target_admin=target,
            clock=clock, client_id=CLIENT_ID, progress=note,
        )  # fmt: skip
        try:
            result = asyncio.run(controller.run_once(all_settings=True))
        finally:
            controller.close()
        acls = AclSync(plan, pair, source=source, target=target)
        lacking = asyncio.run(acls.run_once(progress=lambda action: note(action.reason)))
    found = (problem for each in result.decision.problems.values() for problem in each)
    return (*found, *lacking)
