"""Which rights the target of a pair still lacks: wanted less existing, with a reason each. Pure."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from replicator.control.reconcile.actions import PlannedChange
from replicator.control.reconcile.topic_selection import SelectedTopic
from replicator.identifiers import LinkName, is_canary_topic
from replicator.policy.copies.acl_rules import AclBinding, AclScope, covered, target_bindings
from replicator.topology.plan import PairPlan


@dataclass(frozen=True, slots=True)
class AddAcl:
    """Add one right on the target; nothing is ever taken away there."""

    cluster: str
    link: LinkName
    binding: AclBinding
    reason: str

    def changes(self) -> tuple[PlannedChange, ...]:
        """What ``plan`` says."""
        one = self.binding
        return (
            PlannedChange(self.cluster, "acl", one.shown, None, _words(one), self.reason),
        )  # fmt: skip


def decide_acls(
    pair: PairPlan,
    wanted: Iterable[SelectedTopic],
    *,
    source: Iterable[AclBinding],
    target: Collection[AclBinding],
) -> tuple[AddAcl, ...]:
    """What to add for every link of the pair that carries rights over.

    What is denied comes first, so that no moment grants more than the source does. What is on the
    target stays: nothing shows which rights there we added and which ones people gave.

    ``wanted`` are the topics of the pair that exist on the source; ``source`` and ``target`` are
    the rights there.
    """
    topics: dict[LinkName, dict[str, str]] = {flow.link: {} for flow in pair.flows}
    for one in wanted:
        if one.problem is None and not is_canary_topic(one.topic):
            topics[one.flow.link][one.topic] = one.target
    whole_pair = all(flow.policy.sync_acls for flow in pair.flows)
    existing = frozenset(target)
    actions: dict[AclBinding, AddAcl] = {}
    for flow in pair.flows:
        if not flow.policy.sync_acls:
            continue
        scope = AclScope(flow.policy, flow.source, topics[flow.link], whole_pair)
        for held in sorted(source, key=_denied_first):
            for binding in target_bindings(held, scope):
                if binding not in actions and not covered(binding, existing):
                    reason = f"'{flow.link}' carries rights over; {flow.source} has {_source(held)}"
                    actions[binding] = AddAcl(flow.target, flow.link, binding, reason)
    return tuple(sorted(actions.values(), key=lambda action: _denied_first(action.binding)))


def _denied_first(binding: AclBinding) -> tuple[bool, AclBinding]:
    return binding.permission == "ALLOW", binding


def _words(binding: AclBinding) -> str:
    return f"{binding.permission} {binding.operation} to {binding.principal} from {binding.host}"


def _source(binding: AclBinding) -> str:
    return f"{binding.permission} {binding.operation} on '{binding.shown}'"
