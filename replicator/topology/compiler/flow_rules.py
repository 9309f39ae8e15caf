"""What is refused about flows: names that do not fit, and two flows in one place."""

from collections.abc import Iterator
from itertools import combinations

from replicator.policy.copies.naming import carries_source, name_problem, target_name
from replicator.policy.copies.overlap import find_overlap, on_target
from replicator.policy.copies.selection import is_literal
from replicator.topology.compiler.draft import Draft, DraftLink
from replicator.topology.compiler.engine_choice import engine_findings
from replicator.topology.plan import FlowPlan, LinkPlan
from replicator.topology.problems import Finding, Path

_Pair = tuple[DraftLink, LinkPlan]


def flow_findings(_draft: Draft, links: tuple[_Pair, ...]) -> Iterator[Finding]:
    """Every rule that needs the flows of the links."""
    for link, plan in links:
        yield from _direction_findings(link, plan)
        yield from _length_findings(link, plan)
    yield from engine_findings(links)
    for first, second in combinations(links, 2):
        yield from _overlaps(first, second)


def _direction_findings(link: DraftLink, plan: LinkPlan) -> Iterator[Finding]:
    """A link whose records come back needs target names that name the source, or unchanged names."""
    pairs = {(flow.source, flow.target) for flow in plan.flows}
    loops = [flow for flow in plan.flows if (flow.target, flow.source) in pairs]
    if any(
        flow.policy.naming.kind == "template" and not carries_source(flow.policy.naming)
        for flow in loops
    ):
        wrong = "copies would be copied back under longer and longer names"
        yield Finding(
            link.where("naming"), wrong, "put {source} into the template, or use identity"
        )
    if any(
        flow.policy.sync_topics.deletions == "propagate" and not carries_source(flow.policy.naming)
        for flow in loops
    ):
        wrong = "both sides hold the same topic, so which deletion counts is not known"
        path = link.where("sync", "topics", "deletions")
        yield Finding(path, wrong, "use deletions: keep, or naming: prefix")


def _length_findings(link: DraftLink, plan: LinkPlan) -> Iterator[Finding]:
    where = link.where("topics", "include")
    for at, pattern in enumerate(_include(link)):
        if not is_literal(pattern):
            continue
        names = (target_name(f.policy.naming, f.source, pattern) for f in plan.flows)
        problem = name_problem(pattern) or next(filter(None, map(name_problem, names)), None)
        if problem is not None:
            yield Finding((*where, at), problem, "choose a shorter or a legal name")


def _overlaps(first: _Pair, second: _Pair) -> Iterator[Finding]:
    """At most one finding for two links: the first pair of flows that meets."""
    one, other = first[0].spec.name, second[0].spec.name
    link = second[0]
    doubts: list[Finding] = []
    for flow in second[1].flows:
        for earlier in first[1].flows:
            finding = _meeting(flow, earlier, link.where("topics", "include"), one, other)
            if finding is not None and finding.severity == "error":
                yield finding
                return
            doubts += [finding] if finding is not None else []
    yield from doubts[:1]


def _meeting(flow: FlowPlan, earlier: FlowPlan, path: Path, one: str, other: str) -> Finding | None:
    if flow.target != earlier.target:
        return None
    if flow.source == earlier.source:
        found = find_overlap(earlier.policy.topics, flow.policy.topics)
        wrong = f"links '{one}' and '{other}' both carry '{{}}' from {flow.id}"
    elif carries_source(flow.policy.naming) or carries_source(earlier.policy.naming):
        return _literal_meeting(flow, earlier, path)
    else:
        found = find_overlap(
            on_target(earlier.policy.topics, earlier.policy.naming, earlier.source),
            on_target(flow.policy.topics, flow.policy.naming, flow.source),
        )
        wrong = (
            f"'{{}}' on '{flow.target}' would be written from '{earlier.source}' (link '{one}')"
            f" and from '{flow.source}' (link '{other}')"
        )
    if found is None:
        return None
    if found.kind == "certain":
        remedy = "exclude it from one of the two"
        if flow.source != earlier.source:
            remedy = "use one link for all of them, or naming: prefix"
        return Finding(path, wrong.format(found.example), remedy)
    message = f"links '{one}' and '{other}' may take the same topics: {found.example}"
    return Finding(path, message, "make sure that they do not", "warning")


def _literal_meeting(flow: FlowPlan, earlier: FlowPlan, path: Path) -> Finding | None:
    """Target names that name the source meet others only where a name was written out."""
    names = [
        {
            target_name(each.policy.naming, each.source, pattern)
            for pattern in each.policy.topics.include
            if is_literal(pattern)
        }
        for each in (flow, earlier)
    ]
    common = sorted(names[0] & names[1])
    if not common:
        return None
    wrong = (
        f"'{common[0]}' on '{flow.target}' would be written from '{earlier.source}'"
        f" and from '{flow.source}'"
    )
    return Finding(path, wrong, "rename one of the topics, or exclude it")


def _include(link: DraftLink) -> list[str]:
    topics = link.policy.topics
    return [] if topics is None or topics.include is None else topics.include
