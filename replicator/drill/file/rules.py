"""What is refused about a drill file beyond the shape of its fields. Pure."""

import difflib
from collections.abc import Iterator, Mapping

from replicator.drill.file.document import DrillDocument
from replicator.identifiers import parse_flow_id
from replicator.topology.plan import Plan
from replicator.topology.problems import Finding, Path

_SPEC: Path = ("spec",)
_FAULT_FIELDS: Mapping[str, frozenset[str]] = {
    "worker-crash": frozenset({"workers", "begin", "end"}),
    "network-cut": frozenset({"duration", "side", "how", "workers", "begin", "end"}),
    "switchover": frozenset({"workers"}),
    "failover": frozenset({"how", "workers", "begin", "end"}),
}
"""Which fields of ``fault`` apply to which kind."""


def drill_findings(document: DrillDocument) -> Iterator[Finding]:
    """Every rule that needs the file alone."""
    spec = document.spec
    if all(getattr(spec.limits, name) is None for name in type(spec.limits).model_fields):
        remedy = "give maxRtoSeconds, maxLostRecords or maxReread"
        yield Finding((*_SPEC, "limits"), "no limit is given", remedy)
    if spec.flow is not None:
        try:
            parse_flow_id(spec.flow)
        except ValueError as error:
            yield Finding((*_SPEC, "flow"), str(error), "quote it: 'east->west'")
    takes = _FAULT_FIELDS[spec.kind]
    for name in sorted(spec.fault.model_fields_set - takes):
        wrong = f"'{name}' does not apply to a {spec.kind}"
        yield Finding((*_SPEC, "fault", name), wrong, "remove it", at_key=True)
    if spec.kind == "network-cut" and spec.fault.how == "kill":
        remedy = "write black-hole or refuse, or rehearse a failover"
        yield Finding((*_SPEC, "fault", "how"), "a network cut kills no broker", remedy)
    if spec.fault.end is not None and spec.fault.begin is None:
        yield Finding((*_SPEC, "fault", "end"), "'end' without 'begin'", "add begin: [...]")


def link_findings(document: DrillDocument, plan: Plan) -> Iterator[Finding]:
    """Whether the topology has the link and the flow that the drill speaks of."""
    spec = document.spec
    names = [str(link.name) for link in plan.links]
    link = next((link for link in plan.links if link.name == spec.link), None)
    if link is None:
        wrong = f"the topology has no link '{spec.link}'"
        yield Finding((*_SPEC, "link"), wrong, _meant(spec.link, names))
        return
    flows = [str(flow.id) for flow in link.flows]
    if spec.flow is not None and _flow_text(spec.flow) not in flows:
        wrong = f"link '{spec.link}' has no flow '{spec.flow}'"
        yield Finding((*_SPEC, "flow"), wrong, _meant(spec.flow, flows))
    if spec.flow is None and len(flows) > 1:
        wrong = f"link '{spec.link}' has {len(flows)} flows"
        yield Finding(_SPEC, wrong, f"add 'flow', one of: {', '.join(flows)}")
    if spec.kind in {"switchover", "failover"} and link.shape != "active-passive":
        wrong = f"link '{spec.link}' is {link.shape}: its clusters have no roles to change"
        yield Finding((*_SPEC, "kind"), wrong, "name an active-passive link, or another kind")


def _flow_text(flow: str) -> str:
    return "->".join(part.strip() for part in flow.split("->"))


def _meant(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean '{close[0]}'?" if close else f"it has: {', '.join(known)}"
