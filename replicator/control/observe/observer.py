"""Looking at both clusters of a pair: the only reader behind a snapshot.

Cheap by default: a look at each cluster that tells whether anything has changed. Settings are read
for topics that are new, and for all of them every few rounds.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from replicator.clock import Clock
from replicator.control.lanes.checkpoint_moves import plan_moves
from replicator.control.lanes.layout import decide_layout
from replicator.control.observe.descriptions import TopicDescriptions
from replicator.control.observe.selection_cache import SelectionCache
from replicator.control.observe.topic_facts import TopicFactsCache
from replicator.control.observe.topic_sizes import TopicSizes
from replicator.control.reconcile.initial_backfill import initial_backfill_topics
from replicator.control.reconcile.snapshot import PairSnapshot
from replicator.control.reconcile.topic_selection import SelectedTopic, selected_topics
from replicator.control.store.state import ControlState
from replicator.identifiers import checkpoints_topic
from replicator.kafka.admin import ClusterAdmin
from replicator.kafka.checkpoint_log import read_checkpoint_records
from replicator.kafka.wire_json import decode_key
from replicator.problem import Problem
from replicator.topology.plan import PairPlan, Plan

CONFIG_ROUNDS = 12
"""The settings of all topics are read every so many rounds, and topics are described again where
anything changed: every minute at the default interval. Lanes notice a recreated topic at once, and by
themselves."""

RIGHTS_ROUNDS = 5 * CONFIG_ROUNDS
"""All topics are described in any case every so many rounds: our rights change unseen."""


@dataclass(slots=True)
class Observer:
    """Takes snapshots of one pair; remembers when it last read all settings, and what it described.

    Topics are described again when their number of partitions changes, and with the settings.
    """

    plan: Plan
    pair: PairPlan
    source_admin: ClusterAdmin
    target_admin: ClusterAdmin
    clock: Clock
    client_id: str
    _rounds: int = 0
    _brokers: int = 0
    _source_sizes: TopicSizes = field(init=False)
    _target_sizes: TopicSizes = field(init=False)
    _described_at: tuple[int, int] = (0, 0)
    _wanted: tuple[Mapping[str, int], tuple[SelectedTopic, ...]] | None = None
    _work: SelectionCache | None = None
    _source_facts: TopicFactsCache = field(default_factory=TopicFactsCache)
    _target_facts: TopicFactsCache = field(default_factory=TopicFactsCache)
    _sources: TopicDescriptions = field(init=False)
    _copies: TopicDescriptions = field(init=False)

    def __post_init__(self) -> None:
        self._source_sizes = TopicSizes(self.source_admin, client_id=self.client_id)
        self._target_sizes = TopicSizes(self.target_admin, client_id=self.client_id)
        self._sources = TopicDescriptions(self.source_admin)
        self._copies = TopicDescriptions(self.target_admin)

    def close(self) -> None:
        """Gives its own connections back; the admin clients are their owner's."""
        self._source_sizes.close()
        self._target_sizes.close()

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
        aliases = tuple(str(cluster.alias) for cluster in self.plan.clusters)
        full = all_settings or self._rounds % CONFIG_ROUNDS == 0
        source_sizes = self._source_sizes.read(surely=full)
        target_sizes = self._target_sizes.read(surely=full)
        if self._wanted is None or self._wanted[0] is not source_sizes:
            self._wanted = source_sizes, selected_topics(self.pair, source_sizes, aliases)
        wanted = self._wanted[1]
        work = self._work
        if work is None or not work.rests_on(wanted, control, target_sizes):
            self._work = work = SelectionCache(wanted, control, target_sizes)
        seen = (self._source_sizes.revision, self._target_sizes.revision)
        every = full and (
            all_settings or seen != self._described_at or self._rounds % RIGHTS_ROUNDS == 0
        )
        self._rounds += 1
        if full or not self._brokers:
            self._brokers = len(self.target_admin.describe_cluster().brokers)
        asked = wanted if full else work.new
        snapshot = PairSnapshot(
            at_ms=round(self.clock.now() * 1000),
            aliases=aliases,
            source_names=frozenset(source_sizes),
            source_topics=self._source_facts.of(
                self.source_admin,
                self._sources.read(work.topics, source_sizes, every=every),
                {one.topic for one in asked},
            ),
            target_names=frozenset(target_sizes),
            target_topics=self._target_facts.of(
                self.target_admin,
                self._copies.read(work.copies, target_sizes, every=every),
                {one.target for one in asked} & target_sizes.keys(),
            ),
            target_brokers=self._brokers,
            control=control,
            refusals=refusals,
            just_created=frozenset(just_created),
        )
        if every:
            self._described_at = seen
        if work.in_bulk:
            histories = initial_backfill_topics(
                self.pair.source, self.source_admin, work.in_bulk, snapshot.source_topics
            )
            snapshot = replace(snapshot, histories=histories)
        if work.unrecorded:
            return self._with_checkpoints(snapshot, wanted, target_sizes)
        return snapshot

    def _with_checkpoints(
        self,
        snapshot: PairSnapshot,
        wanted: tuple[SelectedTopic, ...],
        target_sizes: Mapping[str, int],
    ) -> PairSnapshot:
        """Adds where checkpoints of topics stand that no record speaks of yet.

        They are there when a link was renamed or removed and added again, or when the control topic
        was lost; starting such a topic in a lane that cannot see them would copy it twice.
        """
        name = checkpoints_topic(self.plan.topology, self.pair.source.alias)
        partitions = target_sizes.get(name, 0)
        stored = read_checkpoint_records(
            self.plan.topology, self.pair.source.alias, self.pair.target, range(partitions),
            client_id=self.client_id,
        )  # fmt: skip
        if not any(stored.values()):
            return snapshot
        links = {one.topic: str(one.flow.link) for one in wanted}
        sizes = {str(flow.link): 0 for flow in self.pair.flows}
        layout = decide_layout(
            self.pair, snapshot.control.layout(self.pair.source.alias), partitions=sizes
        ).layout
        moves = plan_moves(stored, layout, links)
        misplaced = frozenset(str(decode_key(move.key).get("topic")) for move in moves)
        return replace(snapshot, misplaced=misplaced & links.keys(), checkpoints_exist=True)
