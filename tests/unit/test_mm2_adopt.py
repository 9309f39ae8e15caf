"""The rules of taking over from MirrorMaker 2, without a broker."""

import json

import pytest
from topology_files import plan_of

from replicator.control.operator.mm2_adoption import matching_pairs, reverse_flow
from replicator.errors import RefusedError, StoredFormatError
from replicator.formats.checkpoint import ADOPTED, Checkpoint
from replicator.mm2.configuration.import_map import import_properties
from replicator.mm2.properties.java_properties import parse_properties
from replicator.mm2.topics.adopt import decode_progress
from replicator.offsets.index.runs import Known, Run, Window
from replicator.offsets.index.stored import StoredPartitions
from replicator.offsets.translation.translate import translate
from replicator.offsets.translation.translation import PartitionFacts


def stored(cluster, topic, partition, offset, connector="MirrorSourceConnector"):
    key = [connector, {"cluster": cluster, "partition": partition, "topic": topic}]
    return json.dumps(key).encode(), json.dumps({"offset": offset}).encode()


def test_progress_is_the_last_copied_offset_of_each_partition_of_one_source():
    found = decode_progress(
        [
            stored("east", "orders", 0, 41),
            stored("east", "orders", 1, 0),
            stored("north", "orders", 0, 7),
            (b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"east","targetClusterAlias":"w"}]',
             b'{"offset":0}'),
            (b'["MirrorCheckpointConnector",{"group":"g","partition":0,"topic":"orders"}]',
             b'{"offset":0}'),
            (b"not json", b"{}"),
        ],
        "east",
    )  # fmt: skip
    assert found.last_copied == {("orders", 0): 41, ("orders", 1): 0}
    assert found.unconfirmed == frozenset()


def test_of_two_connectors_the_lower_offset_counts_and_is_reported_as_doubtful():
    found = decode_progress(
        [stored("east", "t", 0, 41), stored("east", "t", 0, 12, connector="other")], "east"
    )
    assert found.last_copied == {("t", 0): 12}
    assert found.unconfirmed == {("t", 0)}


@pytest.mark.parametrize("value", [b"{}", b'{"offset":"x"}', b'{"offset":-1}', b"[]", b"?"])
def test_progress_that_cannot_be_read_is_not_guessed_at(value):
    key, _ = stored("east", "t", 0, 1)
    with pytest.raises(StoredFormatError):
        decode_progress([(key, value)], "east")


def plan(*links):
    return plan_of(*links, clusters=("east", "west", "north"))


def one_way(name, source, target, naming="identity", **more):
    extra = "".join(f", {key}: {value}" for key, value in more.items())
    return (
        f"name: {name}, shape: hub-and-spoke, hub: {target}, spokes: [{source}], "
        f"direction: to-hub, topics: {{include: [orders]}}, naming: {naming}{extra}"
    )


@pytest.mark.parametrize(
    ("links", "back"),
    [
        ([one_way("a", "east", "west")], None),
        ([one_way("a", "east", "west"), one_way("b", "west", "east")], "west->east"),
        ([one_way("a", "east", "west"), one_way("b", "west", "east", naming="prefix")], None),
        ([one_way("a", "east", "west"), one_way("b", "west", "east", startFrom="latest")], None),
        (
            [one_way("a", "east", "west"), one_way("b", "west", "north"),
             one_way("c", "north", "east")],
            "north->east",
        ),
    ],
)  # fmt: skip
def test_a_way_home_under_the_same_name_is_found(links, back):
    wanted = plan(*links)
    found = reverse_flow(wanted, wanted.flows[0], "orders")
    assert (None if found is None else str(found.id)) == back


def test_a_flow_that_the_topology_lacks_is_not_forgotten():
    imported = import_properties(
        parse_properties(
            "clusters=east,west\neast.bootstrap.servers=e:1\nwest.bootstrap.servers=w:1\n"
            "west->east.enabled=true"
        )
    )
    with pytest.raises(RefusedError, match="no flow 'west->east'"):
        matching_pairs(plan(one_way("a", "east", "west")), imported.flows)


# Another program copied source offsets 0 to 99, ours begin at source offset 100, target offset 100.
KNOWN = (Window(0, 200, (Run(100, 100, 100),), tuple(range(100))),)
FACTS = PartitionFacts(
    target_start=0, target_end=200, source_start=0, source_end=200, copied_to=200,
    from_earliest=False, adopted=True,
)  # fmt: skip


@pytest.mark.parametrize(
    ("direction", "position", "grade", "offset"),
    [
        ("forward", 50, "unavailable", None),
        ("forward", 100, "exact", 100),
        ("forward", 150, "exact", 150),
        ("backward", 50, "unavailable", None),
        ("backward", 100, "exact", 100),
        ("backward", 150, "exact", 150),
    ],
)
@pytest.mark.parametrize("cyclic", [False, True])
def test_a_position_among_copies_of_another_program_is_never_guessed_at(
    direction, position, grade, offset, cyclic
):
    facts = PartitionFacts(
        **{name: getattr(FACTS, name) for name in FACTS.__slots__ if name != "cyclic"},
        cyclic=cyclic,
    )
    answer = translate(
        direction, position, known=Known(KNOWN), facts=facts, look=lambda read: pytest.fail("look")
    )
    assert (answer.grade, answer.offset) == (grade, offset)


@pytest.mark.parametrize(("position", "grade"), [(50, "unavailable"), (100, "exact")])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_before_we_copied_anything_only_the_place_of_adoption_is_known(direction, position, grade):
    facts = PartitionFacts(
        target_start=0, target_end=100, source_start=0, source_end=120, copied_to=100,
        from_earliest=False, adopted=True,
    )  # fmt: skip
    known = Known([Window(0, 100, (), tuple(range(100)))])
    answer = translate(
        direction, position, known=known, facts=facts, look=lambda read: pytest.fail("look")
    )
    assert answer.grade == grade


def test_a_checkpoint_says_that_another_program_copied_before():
    stored = StoredPartitions()
    ours = Checkpoint("t", 0, 9, at_ms=2)
    theirs = Checkpoint("t", 0, 5, at_ms=1, extra={ADOPTED: 5})
    stored.fold(0, [(theirs.key(), theirs.value())])
    assert stored.of("t", 0).adopted
    stored.fold(0, [(ours.key(), ours.value())])
    assert not stored.of("t", 0).adopted
