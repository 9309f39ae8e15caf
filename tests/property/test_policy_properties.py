"""What holds for the rules of a flow whatever the input."""

from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from replicator.policy.capacity.lane_assignment import lane_of
from replicator.policy.capacity.throttling import LaneNeed, TokenBucket, split_budget
from replicator.policy.copies.naming import source_name, target_name, template_problem
from replicator.policy.copies.overlap import find_overlap
from replicator.policy.copies.provenance import (
    Hop,
    aliases_of,
    append,
    encode_hop,
    find_hops,
    hop_prefix,
    parse_hops,
    with_hop,
)
from replicator.policy.copies.selection import matcher
from replicator.policy.values import Naming, Selection, Throttle

ALIASES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
TOPICS = st.text(alphabet="abzABZ019._-", min_size=1, max_size=40)
FULL_HOPS = st.builds(Hop, ALIASES, TOPICS, st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1))
HOPS = st.lists(st.one_of(FULL_HOPS, st.builds(Hop, ALIASES)), min_size=1, max_size=6)


def encode_hops(hops):
    return b" ".join(encode_hop(hop) for hop in hops)


HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["replicator-hops", "other"]),
        st.one_of(st.none(), st.binary(max_size=20), HOPS.map(encode_hops)),
    ),
    max_size=5,
)


@given(HOPS)
def test_hops_read_back_as_they_were_written(hops):
    value = encode_hops(hops)
    assert parse_hops(value) == tuple(hops)
    assert aliases_of(value) == tuple(hop.alias for hop in hops)


@given(HOPS, FULL_HOPS)
def test_a_hop_is_added_behind_the_others(hops, hop):
    encoded = hop_prefix(hop.alias, hop.topic, hop.partition) + str(hop.offset).encode()
    assert encoded == encode_hop(hop)
    assert parse_hops(append(encode_hops(hops), encoded)) == (*hops, hop)
    assert parse_hops(append(None, encoded)) == (hop,)


@given(
    st.one_of(st.none(), st.binary(), st.text(alphabet="ab-/ 0129.", max_size=60).map(str.encode))
)
@example(b"a" + b"-" * 5000)
@example(b"a " * 5000)
@example(b"a/t/0/99999999999999999999")
@example(b"a/t/9999999999/0")
@example(b"east//0/1")
@example("é".encode())
def test_arbitrary_bytes_are_read_or_foreign_and_never_an_error(value):
    hops = parse_hops(value)
    if hops is not None:
        assert encode_hops(hops) == value
        assert aliases_of(value) == tuple(hop.alias for hop in hops)


@given(HEADERS, FULL_HOPS)
def test_our_header_ends_last_and_everything_else_stays_as_it_was(headers, hop):
    found = find_hops(headers)
    written = with_hop(headers, found, encode_hop(hop))
    others = [header for at, header in enumerate(headers) if at != found.index]
    assert written[:-1] == others
    assert parse_hops(written[-1][1])[-1] == hop
    named = [value for name, value in headers if name == "replicator-hops"]
    assert found.foreign == sum(
        find_hops([("replicator-hops", value)]).index is None for value in named
    )
    again = find_hops(written)
    assert again.index == len(written) - 1
    assert again.foreign == found.foreign


@given(
    st.sampled_from(["{topic}", "{source}.{topic}", "{topic}_{source}", "x.{source}._{topic}-y"]),
    ALIASES,
    TOPICS,
)
def test_a_template_that_passes_can_be_read_back(template, alias, topic):
    assert template_problem(template) is None
    naming = Naming("template", template)
    assert source_name(naming, alias, target_name(naming, alias, topic)) == topic


@given(st.sampled_from(["{source}.{topic}", "{topic}_{source}"]), ALIASES, ALIASES, TOPICS, TOPICS)
def test_prefixes_of_two_clusters_never_meet(template, one, other, topic, other_topic):
    """For prefixes; a suffix may meet a topic that ends like one, which reads back all the same."""
    naming = Naming("template", template)
    if one != other and template.startswith("{source}"):
        assert target_name(naming, one, topic) != target_name(naming, other, other_topic)


GLOBS = st.text(alphabet="ab*?", min_size=1, max_size=5)
SELECTIONS = st.builds(
    Selection,
    st.lists(GLOBS, min_size=1, max_size=2).map(tuple),
    st.lists(GLOBS, max_size=2).map(tuple),
)


@given(
    SELECTIONS, SELECTIONS, st.lists(st.text(alphabet="abc", min_size=1, max_size=6), max_size=30)
)
def test_two_selections_meet_exactly_when_overlap_says_so(one, other, names):
    found = find_overlap(one, other)
    assert found is None or found.kind == "certain"
    if found is None:
        assert not [name for name in names if matcher(one)(name) and matcher(other)(name)]
    else:
        assert matcher(one)(found.example)
        assert matcher(other)(found.example)


@given(SELECTIONS, st.text(alphabet="ab", min_size=1, max_size=6))
def test_exclude_always_wins(selection, name):
    assert not matcher(replace(selection, exclude=(*selection.exclude, name)))(name)


@given(TOPICS, st.integers(0, 10_000), st.integers(1, 256))
def test_a_partition_has_one_lane_and_neighbours_have_neighbours(topic, partition, count):
    lane = lane_of(topic, partition, count)
    assert 0 <= lane < count
    assert lane_of(topic, partition + 1, count) == (lane + 1) % count
    assert lane_of(topic, partition + count, count) == lane


def test_single_partition_topics_spread_over_the_lanes():
    lanes = [lane_of(f"events-{number:04}", 0, 8) for number in range(2000)]
    assert min(lanes.count(lane) for lane in range(8)) > 180


NEEDS = st.dictionaries(
    st.integers(0, 255),
    st.builds(
        LaneNeed,
        st.integers(0, 10**9),
        st.integers(0, 10**12),
        st.sampled_from(["critical", "normal", "bulk"]),
    ),
    max_size=20,
)
BUDGETS = st.one_of(st.none(), st.integers(1, 10**9))


@given(BUDGETS, BUDGETS, NEEDS)
def test_shares_never_exceed_the_budget_and_no_lane_starves(size, records, needs):
    shares = split_budget(Throttle(size, records), needs)
    assert shares.keys() == needs.keys()
    for budget, given_out in (
        (size, [share.bytes_per_second for share in shares.values()]),
        (records, [share.records_per_second for share in shares.values()]),
    ):
        if budget is None:
            assert set(given_out) <= {None}
        elif needs:
            assert sum(given_out) == budget
            assert min(given_out) >= (1 if budget >= len(needs) else 0)


@given(st.integers(1000, 10**9), st.integers(0, 10**9))
def test_the_urgent_lane_comes_first(budget, backlog):
    needs = {0: LaneNeed(backlog, backlog, "bulk"), 1: LaneNeed(backlog, backlog, "critical")}
    shares = split_budget(Throttle(budget, budget), needs)
    assert shares[1].bytes_per_second >= shares[0].bytes_per_second - 1
    if backlog >= budget:
        assert shares[0].bytes_per_second <= budget // 10


@given(
    st.integers(1, 10**6),
    st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 2)), min_size=1, max_size=30),
)
@settings(max_examples=200)
def test_a_bucket_that_is_obeyed_holds_its_rate(rate, batches):
    now, taken = 0.0, 0
    bucket = TokenBucket(Throttle(bytes_per_second=rate), now=now, burst_seconds=0.25)
    for size, pause in batches:
        taken += size
        now += bucket.take(size_bytes=size, records=1, now=now)
        assert taken <= rate * (now + 0.25) * 1.0001 + 1
        assert bucket.wait_seconds(now=now) <= 1e-6 * max(1.0, now)
        now += pause


def test_a_bucket_without_a_budget_never_waits_and_takes_a_new_one_at_once():
    bucket = TokenBucket(Throttle(), now=0.0)
    assert bucket.take(size_bytes=10**12, records=10**9, now=0.0) == 0.0
    bucket.change(Throttle(records_per_second=10), now=0.0)
    assert bucket.take(size_bytes=0, records=20, now=0.0) == 2.0
    assert bucket.wait_seconds(now=1.5) == 0.5
