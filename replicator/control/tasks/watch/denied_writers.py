"""Periodic task: whether DENY rules keep the writers of a link out of its active cluster, and nothing on record says why.

A process that is killed between the rules of a fence and its record, or that nobody can follow any more, leaves such rules;
so does a person. Applications are refused then, and the control topics know of no fence.
"""

from collections.abc import Collection

from replicator.blocking import finished
from replicator.control.roles.link_facts import active_fence
from replicator.control.roles.open_transitions import open_transition
from replicator.control.tasks.task import TaskContext
from replicator.errors import AuthorizerMissingError, NotAuthorizedError
from replicator.identifiers import is_canary_topic
from replicator.policy.copies.acl_rules import AclBinding, write_denial
from replicator.problem import Problem
from replicator.topology.plan import LinkPlan
from replicator.topology.roles import role_in_force

INTERVAL_SECONDS = 30.0
"""The answer names every rule on topics: megabytes where there are many."""


class DeniedWritersTask:
    """A periodic task, see ``task.PeriodicTask``."""

    name = "writers of the active cluster"
    interval_seconds = INTERVAL_SECONDS

    def __init__(self, context: TaskContext, links: tuple[LinkPlan, ...]) -> None:
        self._context = context
        self._links = links
        self._before: set[str] = set()

    async def run(self) -> tuple[Problem, ...]:
        """Looks once; a problem for each link whose writers were shut out at the last look too."""
        return await finished(self._look)

    def close(self) -> None:
        """Nothing is open between two looks."""

    def _look(self) -> tuple[Problem, ...]:
        from replicator.wire.requests.topic_acls import topic_acls  # slow to import

        source = self._context.pair.source
        links = [link for link in self._links if self._nobody_fences(link)]
        if not links:
            self._before = set()
            return ()
        try:
            there = topic_acls(source)
        except (AuthorizerMissingError, NotAuthorizedError):
            return ()  # without the right to read rules there are none to tell of
        found: dict[str, Problem] = {}
        for link in links:
            fencing, topics = link.procedure.fencing, self._topics(link)
            denied = denied_topics(there, fencing.denied if fencing else (), topics)
            # A topic or two may be shut on purpose; a fence is about all that were there.
            if denied and 2 * len(denied) >= len(topics):
                found[link.name] = _problem(link, str(source.alias), denied, len(topics))
        before, self._before = self._before, set(found)
        return tuple(problem for name, problem in found.items() if name in before)

    def _nobody_fences(self, link: LinkPlan) -> bool:
        """Whether the pair's source is the active cluster, no role change is open, and no fence is on record."""
        states = tuple(self._context.controls().values())
        roles = [record.role() for one in states if (record := one.role(link.name)) is not None]
        role = role_in_force(link, roles)
        return (
            role.active == self._context.pair.source.alias
            and open_transition(states, link.name) is None
            and active_fence(states, link, role) is None
        )

    def _topics(self, link: LinkPlan) -> list[str]:
        return [
            record.topic
            for record in self._context.control().topics(self._context.pair.source.alias, link.name)
            if record.state == "active" and not is_canary_topic(record.topic)
        ]


def denied_topics(
    there: Collection[AclBinding], principals: Collection[str], topics: Collection[str]
) -> list[str]:
    """The topics on which a fence for those principals stands whole. Pure."""
    return sorted(
        topic
        for topic in topics
        if principals and all(write_denial(topic, one) in there for one in principals)
    )


def _problem(link: LinkPlan, active: str, denied: list[str], topics: int) -> Problem:
    fencing = link.procedure.fencing
    who = ", ".join(fencing.denied if fencing else ())
    shown = ", ".join(denied[:3]) + (f" and {len(denied) - 3} more" if len(denied) > 3 else "")
    return Problem(
        "ACTIVE_FENCED",
        link.name,
        f"DENY WRITE for {who} stands on {shown} ({len(denied)} of {topics} topics) on {active}, which is active, and no "
        "fence is on record",
        "Look who put the rules there. They are removed with: kafka-acls.sh --remove --operation Write "
        "--deny-principal <principal> --topic <topic>",
    )


def denied_writers_task(context: TaskContext) -> DeniedWritersTask | None:
    """The task, or None where no link of the pair fences writers by ACLs."""
    flows = {flow.link for flow in context.pair.flows}
    links = tuple(
        link
        for link in context.plan.links
        if link.name in flows
        and link.active is not None
        and link.procedure.fencing is not None
        and link.procedure.fencing.method == "acl"
    )
    return DeniedWritersTask(context, links) if links else None
