"""The folded control topic: every question has the answer that a search of all records gives."""

from hypothesis import given
from hypothesis import strategies as st

from replicator.control.records.decode import decode_record
from replicator.control.records.drill_records import DrillRecord
from replicator.control.records.pair_records import (
    AcceptedGap,
    BackfillRecord,
    Binding,
    GapTaken,
    Layout,
    Lost,
    Pause,
    ProblemRecord,
    QuarantineOutcome,
    Share,
    TopicRecord,
)
from replicator.control.records.role_records import (
    ContactRecord,
    DrainedRecord,
    FenceRecord,
    RoleRecord,
    SalvageRecord,
    SightingRecord,
    StepRecord,
    TransitionRecord,
)
from replicator.control.records.worker_records import WorkerRecord
from replicator.control.store.state import EMPTY

SOURCES, LINKS, TOPICS, IDS = ("a", "b"), ("one", "two"), ("t0", "t1", "t2"), ("x", "y")
PARTITIONS, TIMES = (0, 1), (1, 2)

sources, links, topics, ids, partitions, times = (
    st.sampled_from(values) for values in (SOURCES, LINKS, TOPICS, IDS, PARTITIONS, TIMES)
)
of_topic = {"source": sources, "topic": topics, "partition": partitions, "at_ms": times}
of_link = {"link": links, "id": ids}
signed = {"at_ms": times, "by": st.just("test")}


def some(kind, /, **fields):
    """Records of a kind, made by field name: its aliases would be filled in beside them."""
    return st.fixed_dictionaries(fields).map(lambda values: kind(**values))


RECORDS = st.one_of(
    some(Binding, alias=sources, cluster_id=ids, at_ms=times),
    some(
        Layout, source=sources, epoch=times, state=st.just("stable"), blocks=st.just(()),
        total=st.just(0),
    ),
    some(
        TopicRecord, source=sources, link=links, topic=topics, target=topics, topic_id=ids,
        partitions=times, target_partitions=times, state=st.sampled_from(["active", "gone"]),
    ),
    some(
        Pause, flow=st.sampled_from(["a->c", "b->c"]), link=st.none() | links,
        topic=st.none() | topics, partition=st.none() | partitions, **signed,
    ),
    some(AcceptedGap, token=ids, by=st.just("test"), **of_topic),
    some(GapTaken, id=ids, detail=ids, lost=st.just(Lost()), **of_topic),
    some(
        BackfillRecord, link=links, state=st.sampled_from(["seeding", "done"]), **of_topic
    ),
    some(WorkerRecord, source=sources, id=ids, at_ms=times),
    some(Share, source=sources, link=links, lanes=st.just({})),
    some(ProblemRecord, source=sources, link=links, problems=st.just(()), at_ms=times),
    some(
        QuarantineOutcome, id=st.sampled_from("pqrs"), offset=times, by=st.just("test"),
        outcome=st.sampled_from(["replayed", "discarded"]), **of_topic,
    ),
    some(
        RoleRecord, link=links, epoch=times, active=sources, state=st.just("mirroring"),
        since=times, by=st.just("test"),
    ),
    some(
        TransitionRecord, kind=st.just("failover"), state=st.sampled_from(["open", "done"]),
        source=sources, target=sources, home=sources, token=ids, **of_link, **signed,
    ),
    some(
        StepRecord, step=st.sampled_from(["z", "m", "c"]), state=st.just("done"), **of_link, **signed
    ),
    some(
        FenceRecord, link=links, cluster=sources, method=st.just("acl"), state=st.just("held"),
        **signed,
    ),
    some(ContactRecord, source=sources, link=links, at_ms=times, topics=st.just(())),
    some(SalvageRecord, topic=topics, partition=partitions, next_offset=times, **of_link),
    some(SightingRecord, cluster=sources, worker=ids, at_ms=times),
    some(DrainedRecord, link=links, cluster=sources, **signed),
    some(
        DrillRecord, name=ids, drill=ids, flow=ids, mode=st.just("real"), verdict=st.just("pass"),
        rto_seconds=st.none(), lost_records=times, lost_seconds=st.just(0.0), reread_records=times,
        skipped_records=times, number=times, checksum=ids, previous=ids, plan_hash=ids,
        drill_hash=ids, **of_link, **signed,
    ),
)  # fmt: skip

LOGS = st.lists(
    st.tuples(RECORDS, st.booleans()).map(
        lambda one: one[0].tombstone() if one[1] else one[0].encode()
    ),
    max_size=40,
)


class Search:
    """The same questions, answered by looking at every record."""

    def __init__(self):
        self.held = {}

    def take(self, log):
        for key, value in log:
            identity, record = decode_record(key, value)
            if record is None:
                self.held.pop(identity, None)
            else:
                self.held[identity] = record

    def where(self, kind, order=None, **fields):
        found = [
            record
            for record in self.held.values()
            if isinstance(record, kind)
            and all(getattr(record, name) == value for name, value in fields.items())
        ]
        return tuple(sorted(found, key=order) if order else found)

    def one(self, kind, *identity):
        return self.held.get((kind.KIND, identity))

    def paused(self, flow, link, topic, partition):
        return any(
            pause.link in {None, link}
            and pause.topic in {None, topic}
            and pause.partition in {None, partition}
            for pause in self.where(Pause, flow=flow)
        )


def by_name(topic):
    return (topic.source, topic.link, topic.topic)


def by_place(seed):
    return (seed.link, seed.topic, seed.partition)


def by_time(one):
    return (one.at_ms, one.id)


def check_partition(state, naive, place):
    source, link, topic, partition = place
    assert state.seed(*place) == naive.one(BackfillRecord, *place)
    held = naive.where(
        BackfillRecord, source=source, link=link, topic=topic, partition=partition, state="seeding"
    )
    assert state.copied_by_spark(*place) == bool(held)
    assert state.gap(source, topic, partition) == naive.one(AcceptedGap, source, topic, partition)
    flow = f"{source}->c"
    assert state.paused(flow, link, topic, partition) == naive.paused(flow, link, topic, partition)


def check_link(state, naive, link):
    assert state.role(link) == naive.one(RoleRecord, link)
    assert state.transitions(link) == naive.where(TransitionRecord, by_time, link=link)
    drained = naive.where(DrainedRecord, link=link)
    assert state.drained(link) == tuple(sorted(one.cluster for one in drained))
    for cluster in SOURCES:
        assert state.fence(link, cluster) == naive.one(FenceRecord, link, cluster)
    for one in IDS:
        steps = naive.where(StepRecord, lambda step: step.at_ms, link=link, id=one)
        assert state.steps(link, one) == steps
        assert state.salvaged(link, one) == naive.where(SalvageRecord, link=link, id=one)


def check_flow(state, naive, source, link):
    assert state.topics(source, link) == naive.where(TopicRecord, by_name, source=source, link=link)
    assert state.seeds(source, link) == naive.where(
        BackfillRecord, by_place, source=source, link=link
    )
    assert state.share(source, link) == naive.one(Share, source, link)
    assert state.problems(source, link) == naive.one(ProblemRecord, source, link)
    assert state.contact(source, link) == naive.one(ContactRecord, source, link)
    for topic in TOPICS:
        assert state.topic(source, link, topic) == naive.one(TopicRecord, source, link, topic)
        for partition in PARTITIONS:
            check_partition(state, naive, (source, link, topic, partition))


def check_source(state, naive, source):
    assert state.layout(source) == naive.one(Layout, source)
    assert state.binding(source) == naive.one(Binding, source)
    assert state.topics(source) == naive.where(TopicRecord, by_name, source=source)
    assert state.seeds(source) == naive.where(BackfillRecord, by_place, source=source)
    assert state.workers(source) == naive.where(WorkerRecord, lambda one: one.id, source=source)
    assert state.pauses(f"{source}->c") == naive.where(Pause, flow=f"{source}->c")
    assert state.gaps(source) == naive.where(AcceptedGap, source=source)
    assert state.gaps_taken(source) == naive.where(GapTaken, source=source)
    assert state.kept_of_links(source) == (
        *naive.where(ProblemRecord, source=source), *naive.where(Share, source=source),
    )  # fmt: skip
    seen = [one.at_ms for one in naive.where(SightingRecord, cluster=source)]
    assert state.last_sighting_ms(source) == max(seen, default=None)
    for topic in TOPICS:
        assert state.quarantine_outcomes(source, topic) == naive.where(
            QuarantineOutcome, source=source, topic=topic
        )
    for link in LINKS:
        check_flow(state, naive, source, link)


def check(state, naive):
    assert state.records() == naive.held
    assert state.bindings() == naive.where(Binding)
    assert state.transitions() == naive.where(TransitionRecord, by_time)
    assert state.drills() == naive.where(DrillRecord, by_time)
    for topic in TOPICS:
        assert state.topics_into(topic) == naive.where(TopicRecord, by_name, target=topic)
    for record_id in "pqrs":
        assert state.quarantine_outcome(record_id) == naive.one(QuarantineOutcome, record_id)
    for link in LINKS:
        check_link(state, naive, link)
    for source in SOURCES:
        check_source(state, naive, source)


@given(st.lists(LOGS, min_size=1, max_size=4))
def test_an_indexed_state_answers_as_a_search_of_all_records(logs):
    state, naive = EMPTY, Search()
    for log in logs:
        before, answers = state, [state.topics(source) for source in SOURCES]
        held = dict(naive.held)
        state = state.fold(log)
        naive.take(log)
        check(state, naive)
        assert before.records() == held  # a snapshot never changes
        assert [before.topics(source) for source in SOURCES] == answers


@given(LOGS, LOGS)
def test_a_log_that_changes_nothing_leaves_the_same_object(log, more):
    state = EMPTY.fold(log)
    known = [record.encode() for record in state.records().values()]
    absent = [(key, None) for key, _ in more if decode_record(key, None)[0] not in state.records()]
    assert state.fold([*known, *absent]) is state


@given(LOGS)
def test_an_answer_is_the_same_object_until_a_record_in_it_changes(log):
    state = EMPTY.fold(log)
    after = state.fold([WorkerRecord(source="a", id="new", at_ms=9).encode()])
    assert after.same_orders(state)  # it asks nothing of a lane
    for source in SOURCES:
        assert after.topics(source) is state.topics(source)
        assert after.pauses(f"{source}->c") is state.pauses(f"{source}->c")
    changed = after.fold([Pause(flow="a->c", topic="t9", at_ms=9, by="test").encode()])
    assert not changed.same_orders(state)
