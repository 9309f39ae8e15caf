"""Roles as they stand now, for commands: read once from every cluster that answers in time."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from replicator.control.roles.watch import role_clusters
from replicator.control.store.read import read_control
from replicator.control.store.state import EMPTY, ControlState
from replicator.errors import NotFoundError, ReplicatorError
from replicator.topology.plan import LinkPlan, Plan
from replicator.topology.roles import Role, has_roles, orient, role_in_force

CLIENT_ID = "replicator-roles"
CLUSTER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class RolesRead:
    """What control topics say; a cluster that did not answer is under ``silent`` with the reason."""

    plan: Plan
    states: Mapping[str, ControlState]
    silent: Mapping[str, ReplicatorError] = field(default_factory=dict)

    def role(self, link: LinkPlan) -> Role:
        """The role of a link in force, as far as it is visible."""
        records = (state.role(link.name) for state in self.states.values())
        return role_in_force(link, [record.role() for record in records if record is not None])

    def roles(self) -> dict[str, Role]:
        """The role of every link that has one."""
        return {link.name: self.role(link) for link in self.plan.links if has_roles(link)}

    def oriented(self) -> Plan:
        """The plan with flows as roles have them."""
        return orient(self.plan, self.roles())


def read_roles(
    plan: Plan,
    *,
    client_id: str = CLIENT_ID,
    timeout_seconds: float = CLUSTER_SECONDS,
    links: Sequence[LinkPlan] | None = None,
    followed: Mapping[str, ControlState] | None = None,
) -> RolesRead:
    """Reads the control topics of all clusters of links with roles, at the same time.

    With ``links`` those of their clusters, whatever their shape. A cluster in ``followed`` is not read:
    the worker that asks knows what it says.
    """
    clusters = role_clusters(plan)
    if links is not None:
        wanted = dict.fromkeys(alias for link in links for alias in link.clusters)
        clusters = tuple(plan.cluster(alias) for alias in wanted)
    if not clusters:
        return RolesRead(plan, {})

    def read(alias: str) -> ControlState | ReplicatorError:
        try:
            return read_control(
                plan.topology,
                plan.cluster(alias),
                client_id=client_id,
                timeout_seconds=timeout_seconds,
            )
        except NotFoundError:
            return EMPTY
        except ReplicatorError as error:
            return error

    known = followed or {}
    states = {str(one.alias): known[one.alias] for one in clusters if one.alias in known}
    aliases = [str(one.alias) for one in clusters if one.alias not in known]
    if not aliases:
        return RolesRead(plan, states)
    with ThreadPoolExecutor(len(aliases), thread_name_prefix="roles") as pool:
        answers = dict(zip(aliases, pool.map(read, aliases), strict=True))
    return RolesRead(
        plan,
        states | {a: one for a, one in answers.items() if isinstance(one, ControlState)},
        {a: one for a, one in answers.items() if isinstance(one, ReplicatorError)},
    )


def in_force(plan: Plan) -> Plan:
    """The plan with its flows as the roles have them now."""
    return read_roles(plan, client_id=CLIENT_ID).oriented()
