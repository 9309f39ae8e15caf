"""From a link's role and its last change to the figures of a scrape. Pure."""

from replicator.control.records.role_records import TransitionRecord
from replicator.control.roles.link_facts import LinkFacts
from replicator.observability.snapshot import LinkMetrics
from replicator.topology.plan import LinkPlan
from replicator.topology.roles import Role


def link_metrics(
    link: LinkPlan,
    role: Role,
    last: TransitionRecord | None,
    facts: LinkFacts | None = None,
    *,
    now_ms: int = 0,
) -> LinkMetrics:
    """What metrics tell of a link with roles."""
    transition = facts.transition if facts is not None else None
    report = (last.report if last is not None else None) or {}
    duration, loss = report.get("rtoSeconds"), report.get("loss") or {}
    failed_over = last is not None and last.kind == "failover"
    lost = loss.get("records") if loss.get("known", True) else None
    return LinkMetrics(
        link=link.name,
        epoch=role.epoch,
        roles={
            str(alias): "active" if alias == role.active else "passive" for alias in link.clusters
        },
        duration_seconds=float(duration) if isinstance(duration, int | float) else None,
        lost_records=_lost(lost) if failed_over else (0 if report else None),
        open_kind=transition.kind if transition is not None else "",
        open_seconds=max(0, now_ms - transition.at_ms) / 1000 if transition is not None else None,
        fences=[(one.cluster, one.method) for one in facts.fences] if facts is not None else (),
        problem_codes=[one.code for one in facts.problems] if facts is not None else (),
    )


def _lost(records: object) -> int | None:
    """None where nobody knew: no figure is better than a nought."""
    return records if isinstance(records, int) else None
