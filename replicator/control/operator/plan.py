"""What ``plan`` shows: the decision of the controller, without doing it. Writes nothing."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from replicator.clock import Clock
from replicator.control.backfill.estimate import BackfillEstimate, estimate_backfill
from replicator.control.observe.observer import Observer
from replicator.control.reconcile.actions import PlannedChange
from replicator.control.reconcile.decide import Decision, Reconciler
from replicator.control.reconcile.permissions import missing_rights
from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.reconcile.topic_selection import TopicSelector
from replicator.control.store.bindings import binding_conflicts, missing_bindings
from replicator.control.store.read import read_control
from replicator.control.store.state import EMPTY, ControlState
from replicator.control.tasks.sync.acl_sync import AclSync
from replicator.errors import ReplicatorError
from replicator.identifiers import JsonObject, checkpoints_topic, control_topic, quarantine_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.offsets.groups.group_sync import groups_of
from replicator.problem import Problem, problem_json
from replicator.topology.plan import ClusterPlan, PairPlan, Plan

CLIENT_ID = "replicator-plan"

BLOCKING = frozenset({"ALIAS_CONFLICT", "UNSUPPORTED_BROKER"})
"""Problems under which a pair must not be touched at all."""


@dataclass(frozen=True, slots=True)
class PairForecast:
    """What would happen to one pair, and what stands in the way."""

    pair: PairPlan
    changes: tuple[PlannedChange, ...] = ()
    seed: tuple[BackfillEstimate, ...] = ()
    groups: tuple[tuple[str, str], ...] = ()
    """Link and name of each consumer group whose positions are carried over."""
    warnings: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()
    compared: bool = True
    """False when a side did not answer or must not be touched: then no changes is no answer."""

    @property
    def blocked(self) -> bool:
        """Whether a problem forbids touching the pair."""
        return any(problem.code in BLOCKING for problem in self.problems)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What would happen to all pairs."""

    pairs: tuple[PairForecast, ...]

    @property
    def compared(self) -> bool:
        """Whether every pair could be compared."""
        return all(pair.compared for pair in self.pairs)

    @property
    def changes(self) -> tuple[PlannedChange, ...]:
        """All changes, each once: pairs share control topics."""
        return tuple(dict.fromkeys(change for pair in self.pairs for change in pair.changes))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All problems, each once."""
        return tuple(dict.fromkeys(problem for pair in self.pairs for problem in pair.problems))

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """All warnings, each once."""
        return tuple(dict.fromkeys(item for pair in self.pairs for item in pair.warnings))

    def as_json(self) -> JsonObject:
        """The object of ``plan -o json``."""
        return {
            "changes": [change.as_json() for change in self.changes],
            "seed": [seed.as_json() for pair in self.pairs for seed in pair.seed],
            "groups": [
                {"flow": pair.pair.id, "link": link, "group": group}
                for pair in self.pairs
                for link, group in pair.groups
            ],
            "warnings": [problem_json(problem) for problem in self.warnings],
            "problems": [problem_json(problem) for problem in self.problems],
        }


def forecast(plan: Plan, *, clock: Clock) -> Forecast:
    """Compares the topology with the live clusters, all pairs at the same time. Blocking."""
    pairs = plan.pairs
    if not pairs:
        return Forecast(())
    admins = {
        str(cluster.alias): ClusterAdmin(cluster, client_id=CLIENT_ID) for cluster in plan.clusters
    }
    try:
        with ThreadPoolExecutor(len(pairs), thread_name_prefix="plan") as pool:
            return Forecast(tuple(pool.map(lambda pair: _pair(plan, pair, admins, clock), pairs)))
    finally:
        for admin in admins.values():
            admin.close()


def _pair(
    plan: Plan, pair: PairPlan, admins: Mapping[str, ClusterAdmin], clock: Clock
) -> PairForecast:
    source, target = admins[pair.source.alias], admins[pair.target.alias]
    try:
        ids = {
            str(cluster.alias): _supported_id(cluster, admins[cluster.alias])
            for cluster in (pair.source, pair.target)
        }
        states = {
            str(cluster.alias): _control(plan, cluster, admins[cluster.alias])
            for cluster in (pair.source, pair.target)
        }
        conflicts = [
            conflict
            for state in states.values()
            for conflict in binding_conflicts(state.bindings() if state else (), ids)
        ]
        if conflicts:
            return PairForecast(
                pair, problems=tuple(_problem(item) for item in conflicts), compared=False
            )
        selector = TopicSelector(pair, [str(cluster.alias) for cluster in plan.clusters])
        observer = Observer(plan, selector, source, target, clock=clock, client_id=CLIENT_ID)
        control = states[pair.target.alias] or EMPTY
        snapshot = observer.observe(
            control, refusals={}, just_created=frozenset(), all_settings=True
        )
        decision = Reconciler(selector).decide(snapshot)
        problems = [problem for found in decision.problems.values() for problem in found]
        problems.extend(missing_rights(plan, pair, source, target, snapshot))
        acls = AclSync(plan, pair, source=source, target=target).look()
        problems.extend(acls.problems)
        return PairForecast(
            pair,
            changes=(
                *_own_topics(plan, pair, states, snapshot, ids=ids, decision=decision),
                *(change for action in decision.actions for change in action.changes()),
                *(change for action in acls.actions for change in action.changes()),
            ),
            seed=estimate_backfill(plan, pair, source, snapshot),
            groups=_groups(plan, pair, source),
            warnings=decision.warnings,
            problems=tuple(problems),
        )
    except ReplicatorError as error:
        problem = _problem(error, subject=str(pair.id))
        return PairForecast(pair, problems=(problem,), compared=False)


def _groups(plan: Plan, pair: PairPlan, source: ClusterAdmin) -> tuple[tuple[str, str], ...]:
    """No changes: positions move all the time, and a plan without differences must stay one."""
    listed = source.list_groups()
    return tuple(
        (str(flow.link), group) for flow in pair.flows for group in groups_of(plan, flow, listed)
    )


def _supported_id(cluster: ClusterPlan, admin: ClusterAdmin) -> str:
    from replicator.wire.probes.broker_versions import require_supported

    require_supported(cluster)
    return admin.cluster_id()


def _control(plan: Plan, cluster: ClusterPlan, admin: ClusterAdmin) -> ControlState | None:
    """The control topic of a cluster; None when there is none yet."""
    if control_topic(plan.topology) not in admin.topic_partitions():
        return None
    return read_control(plan.topology, cluster, client_id=CLIENT_ID)


def _own_topics(
    plan: Plan,
    pair: PairPlan,
    states: Mapping[str, ControlState | None],
    snapshot: PairSnapshot,
    *,
    ids: Mapping[str, str],
    decision: Decision,
) -> Iterable[PlannedChange]:
    """Control topics and bindings that do not exist yet."""
    for alias, state in states.items():
        if state is None:
            yield PlannedChange(
                alias, "create-topic", control_topic(plan.topology), None, "1 partitions",
                "every cluster of the topology has a control topic",
            )  # fmt: skip
        for binding in missing_bindings(state.bindings() if state else (), ids, at_ms=0):
            yield PlannedChange(
                alias, "bind-alias", binding.alias, None, binding.cluster_id,
                "from now on this alias means this cluster",
            )  # fmt: skip
    for name, size, reason in (
        (
            checkpoints_topic(plan.topology, pair.source.alias),
            decision.layout.layout.total,
            f"progress of {pair.id}, one partition per lane",
        ),
        (
            quarantine_topic(plan.topology, pair.source.alias),
            1,
            f"records of {pair.id} that cannot be copied",
        ),
    ):
        if name not in snapshot.target.sizes:
            target = pair.target.alias
            yield PlannedChange(target, "create-topic", name, None, f"{size} partitions", reason)


def _problem(error: ReplicatorError, *, subject: str = "") -> Problem:
    return Problem(error.code, error.subject or subject, error.message, error.remedy)
