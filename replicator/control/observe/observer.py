"""Looking at both clusters of a pair: the only reader behind a snapshot.

Cheap by default: a look at each cluster that tells whether anything has changed. Settings at the source
are read every round, those of the target where the source's changed, and all of them every few rounds.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from replicator.clock import Clock
from replicator.control.lanes.checkpoint_moves import CHECKED_KINDS, plan_moves
from replicator.control.lanes.layout import decide_layout
from replicator.control.observe.cluster_reader import ClusterReader
from replicator.control.observe.needs import Needs, needs_of
from replicator.control.reconcile.cluster_view import ClusterView
from replicator.control.reconcile.initial_backfill import initial_backfill_topics
from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.reconcile.topic_selection import (
    SelectedTopic,
    TopicSelection,
    TopicSelector,
)
from replicator.control.reconcile.topics.unselected import asked_by_name
from replicator.control.store.bindings import binding_conflicts
from replicator.control.store.state import EMPTY, ControlState
from replicator.errors import NotAuthorizedError, NotFoundError
from replicator.identifiers import checkpoints_topic
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.wire_json import decode_key
from replicator.kafka.logs.checkpoint_log import read_checkpoint_records
from replicator.problem import Problem
from replicator.topology.plan import Plan

SETTINGS_AT_ONCE = 1000
"""Of more topics than that the settings at the source are read in turns, one after the other."""

CONFIG_ROUNDS = 12
"""The settings of all topics on both sides are read every so many rounds, and topics are described again where
anything changed: every minute at the default interval. Lanes notice a recreated topic at once, and by
themselves."""

RIGHTS_ROUNDS = 5 * CONFIG_ROUNDS
"""All topics are described in any case every so many rounds: a change of our rights shows in no look."""


class Observer:
    """Takes snapshots of one pair, from a view of each cluster that it keeps current."""

    def __init__(
        self,
        plan: Plan,
        selector: TopicSelector,
        source_admin: ClusterAdmin,
        target_admin: ClusterAdmin,
        *,
        clock: Clock,
        client_id: str,
    ) -> None:
        """``selector`` selects the topics of the pair; the reconciler may share it."""
        self._plan = plan
        self._pair = selector.pair
        self._selector = selector
        self._source_admin = source_admin
        self._target_admin = target_admin
        self._clock = clock
        self._client_id = client_id
        self._aliases = tuple(str(cluster.alias) for cluster in plan.clusters)
        self._rounds = 0
        self._settings_from = 0
        self._brokers = 0
        self._source = ClusterReader(source_admin, client_id=client_id)
        self._target = ClusterReader(target_admin, client_id=client_id)
        self._needs = needs_of(TopicSelection(()), EMPTY, ClusterView())
        self._needs_basis: tuple[int, int, ControlState] | None = None
        self._refused: frozenset[str] = frozenset()

    def close(self) -> None:
        """Closes the connections of its own; the admin clients are their owner's."""
        self._source.close()
        self._target.close()

    def observe(
        self,
        control: ControlState,
        *,
        refusals: Mapping[str, Problem],
        just_created: AbstractSet[str],
        all_settings: bool = False,
    ) -> PairSnapshot:
        """One snapshot; ``all_settings`` reads the settings of every topic this time.

        Raises:
            ClusterError: a cluster does not answer, or refuses to be looked at.
        """
        full = all_settings or self._rounds % CONFIG_ROUNDS == 0
        source, target = self._source.look(surely=full), self._target.look(surely=full)
        known = source.version
        selection = self._selector.select(source)
        needs = self._needs_now(selection, control)
        every = full and (
            all_settings
            or self._source.outdated
            or self._target.outdated
            or self._rounds % RIGHTS_ROUNDS == 0
        )
        self._rounds += 1
        if full:
            self._check_source(control)
        if full or not self._brokers:
            self._brokers = len(self._target_admin.describe_cluster().brokers)
        asked = selection.topics if full else (*needs.new, *self._tried_again(selection, refusals))
        source = self._source.describe(
            anew=every,
            settings={one.topic for one in asked} | self._settings_turn(selection),
        )
        changed = source.changed_since(known)
        target = self._target.describe(
            anew=every,
            settings={one.target for one in asked}
            | {
                one.target
                for topic in (selection.places if changed is None else changed)
                if (one := selection.get(topic)) is not None
            },
        )
        snapshot = PairSnapshot(
            at_ms=round(self._clock.now() * 1000),
            aliases=self._aliases,
            source=source,
            target=target,
            target_brokers=self._brokers,
            control=control,
            refusals=refusals,
            absences=self._absences(control, source),
            just_created=frozenset(just_created),
        )
        if needs.in_bulk:
            histories = initial_backfill_topics(
                self._pair.source, self._source_admin, needs.in_bulk, source.topics
            )
            snapshot = replace(snapshot, histories=histories)
        return self._with_checkpoints(snapshot, selection) if needs.unrecorded else snapshot

    def _absences(self, control: ControlState, source: ClusterView) -> dict[str, Problem | None]:
        """Asks the source by name for topics on record that it does not list."""
        now_ms = round(self._clock.now() * 1000)
        names = asked_by_name(self._pair, control, source.sizes, at_ms=now_ms)
        if not names:
            return {}
        answers = self._source_admin.describe_each_topic(names)
        self._check_source(control)
        found: dict[str, Problem | None] = {}
        for name in names:
            answer = answers.get(name)
            if isinstance(answer, NotFoundError):
                found[name] = None
            elif isinstance(answer, NotAuthorizedError):
                found[name] = Problem(
                    answer.code,
                    name,
                    f"'{name}' is hidden on {self._pair.source.alias}: our user may not describe it; "
                    f"whether it still exists is not known",
                    answer.remedy or "Allow DESCRIBE and READ on it, or exclude the topic.",
                )
        return found

    def _check_source(self, control: ControlState) -> None:
        """What another cluster lacks says nothing about this one.

        Raises:
            AliasConflictError: another cluster answers at the source's addresses.
        """
        alias = str(self._pair.source.alias)
        conflicts = binding_conflicts(control.bindings(), {alias: self._source_admin.cluster_id()})
        if conflicts:
            raise conflicts[0]

    def _needs_now(self, selection: TopicSelection, control: ControlState) -> Needs:
        """What to look at, worked out again where a view or the control topic changed."""
        source, target = self._source.view, self._target.view
        basis = self._needs_basis
        if (
            basis is None
            or basis[:2] != (source.version, target.version)
            or not control.same_orders(basis[2])
        ):
            self._needs = needs_of(selection, control, target)
            self._source.follow(self._needs.sources)
            self._target.follow(self._needs.targets)
        self._needs_basis = source.version, target.version, control
        return self._needs

    def _settings_turn(self, selection: TopicSelection) -> set[str]:
        """The topics whose settings at the source are read this round: all, or the next so many."""
        names = sorted(selection.places)
        most = max(SETTINGS_AT_ONCE, -(-len(names) // CONFIG_ROUNDS))
        if len(names) <= most:
            return set(names)
        first = self._settings_from if self._settings_from < len(names) else 0
        self._settings_from = first + most
        return set(names[first : first + most])

    def _tried_again(
        self, selection: TopicSelection, refusals: Mapping[str, Problem]
    ) -> list[SelectedTopic]:
        """Topics of which an action was refused and is decided again: by their settings of now."""
        refused = frozenset(problem.subject for problem in refusals.values())
        lapsed, self._refused = self._refused - refused, refused
        return [one for topic in lapsed if (one := selection.get(topic)) is not None]

    def _with_checkpoints(self, snapshot: PairSnapshot, selection: TopicSelection) -> PairSnapshot:
        """Adds where the checkpoints of topics are that have no record yet.

        They are there when a link was renamed or removed and added again, or when the control topic
        was lost; starting such a topic in a lane that cannot see them would copy it twice.
        """
        name = checkpoints_topic(self._plan.topology, self._pair.source.alias)
        partitions = snapshot.target.sizes.get(name, 0)
        stored = read_checkpoint_records(
            self._plan.topology, self._pair.source.alias, self._pair.target, range(partitions),
            client_id=self._client_id,
        )  # fmt: skip
        if not any(stored.values()):
            return snapshot
        links = {one.topic: str(one.flow.link) for one in selection.topics}
        sizes = {str(flow.link): 0 for flow in self._pair.flows}
        layout = decide_layout(
            self._pair, snapshot.control.layout(self._pair.source.alias), partitions=sizes
        ).layout
        moves = plan_moves(stored, layout, links)
        misplaced = frozenset(
            str(decode_key(move.key, kinds=CHECKED_KINDS).get("topic")) for move in moves
        )
        return replace(snapshot, misplaced=misplaced & links.keys(), checkpoints_exist=True)
