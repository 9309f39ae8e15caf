"""Every recorded role change and drill of a topology, with evidence."""

from collections.abc import Mapping
from typing import Any

from replicator.control.records.role_records import TransitionRecord
from replicator.control.roles.read import read_roles
from replicator.control.store.drills import drills_in
from replicator.control.store.state import ControlState
from replicator.failover.clusters.link_clusters import CLIENT_ID, find_link
from replicator.failover.report.report import TransitionReport
from replicator.failover.steps.journal import why_ended
from replicator.identifiers import JsonObject
from replicator.problem import problem_json, problem_of
from replicator.topology.plan import Plan


def history(
    plan: Plan, link: str | None = None, *, followed: Mapping[str, ControlState] | None = None
) -> JsonObject:
    """The object of ``history -o json``: entries of all kinds, oldest first; ``at`` in milliseconds.

    Works with no worker running. A cluster that cannot be read is left out and named under ``problems``.
    Control topics in ``followed`` (by cluster) are not read again.

    Raises:
        InputError: the topology has no such link.
    """
    links = plan.links if link is None else (find_link(plan, link),)
    read = read_roles(plan, client_id=CLIENT_ID, links=links, followed=followed)
    drills = drills_in(read.states.values(), link)
    entries = [*_transitions(read.states, link), *(drill.entry() for drill in drills)]
    return {
        "entries": sorted(entries, key=lambda entry: int(str(entry["at"]))),
        "problems": [
            problem_json(problem_of(error, subject=f"cluster:{alias}"))
            for alias, error in sorted(read.silent.items())
        ],
    }


def _transitions(states: Mapping[str, ControlState], link: str | None) -> list[JsonObject]:
    """The reports of transitions, one by one; an open one has the outcome ``open`` and its steps so far."""
    found: dict[str, JsonObject] = {}
    for state in states.values():
        for one in state.transitions(link):
            steps: list[object] = [
                {
                    "step": step.step, "seconds": step.seconds,
                    "result": step.result or step.state, "evidence": step.evidence,
                }
                for step in state.steps(one.link, one.id)
            ]  # fmt: skip
            entry = {**_empty(one), "steps": steps}
            if one.report is not None:
                entry = {**one.report, "steps": _with_evidence(one.report, state, one)}
            if one.state != "open" or one.id not in found:
                found[one.id] = dict(entry)
    return list(found.values())


def _with_evidence(
    report: Mapping[str, Any], state: ControlState, one: TransitionRecord
) -> list[object]:
    """The steps of a report, each with the evidence on record; reports of a release before have theirs."""
    found = {step.step: step.evidence for step in state.steps(one.link, one.id)}
    return [
        {**step, "evidence": step.get("evidence") or found.get(step["step"], {})}
        for step in report.get("steps", ())
    ]


def _empty(one: TransitionRecord) -> JsonObject:
    """The report of a transition that has not ended, or was superseded."""
    report = TransitionReport(
        id=one.id, kind=one.kind, link=one.link, from_cluster=one.source, to_cluster=one.target,
        epoch=one.base_epoch, outcome="done", at_ms=one.at_ms, by=one.by,
        plan_hash=one.plan_hash, fencing=one.fencing, reason=why_ended(one),
    )  # fmt: skip
    return {**report.as_json(), "outcome": one.state}
