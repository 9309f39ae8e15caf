"""The sparse index a lane writes: every entry names the true place of a record on the target."""

from lane_lab import recreate

from replicator.dataplane.takeover.lane_records import read_lane_records
from replicator.offsets.index.index import decode_index, index_pairs


def stored_pairs(lab, topic):
    (running, *_) = lab.lanes
    entries = decode_index(read_lane_records(running.spec, client_id="lab"))
    return index_pairs(entries.get((topic, 0), []))


def true_places(lab, topic):
    """Target offset of each source offset, from the records' own values."""
    return {int(seen.value): seen.offset for seen in lab.on_target(topic)}


def test_entries_name_the_place_of_the_copy_across_commits_and_a_new_owner(lab):
    topic = lab.topic()
    lab.numbered(topic, range(25_000))
    first = lab.lane(topic)
    lab.caught_up(first)
    for number in range(25_000, 25_003):  # each in a transaction of its own: markers in between
        lab.numbered(topic, [number])
        lab.caught_up(first)
    first.stop()
    second = lab.lane(topic)
    lab.numbered(topic, range(25_003, 40_000))
    lab.caught_up(second)

    pairs, places = stored_pairs(lab, topic), true_places(lab, topic)

    assert len(pairs) >= 2
    assert {pair.source: pair.target for pair in pairs} == {
        pair.source: places[pair.source] for pair in pairs
    }
    assert max(pair.source for pair in pairs) >= 25_003


def test_a_recreated_source_takes_the_index_with_it(lab):
    topic = lab.topic()
    lab.numbered(topic, range(2000))
    lane = lab.lane(topic, on_truncation="report")
    lab.caught_up(lane)
    more = iter(range(2000, 3000))

    def noted():
        """An entry names what a commit's own delivery reports gave, so one commit alone may store none."""
        lab.numbered(topic, [next(more)])
        lab.caught_up(lane)
        return stored_pairs(lab, topic)

    (before, *_) = lab.until(noted, "entries of the index", lane)
    copies = lab.end(topic, cluster=lab.target)
    recreate(lab.source, topic)
    lab.numbered(topic, range(100, 140))
    lab.until(lambda: lab.checkpoints()[topic, 0].offset == 40, "the new topic", lane)
    lab.numbered(topic, range(200, 205))
    lab.caught_up(lane)

    pairs = stored_pairs(lab, topic)

    assert before.target < copies
    assert all(pair.source < 45 and pair.target >= copies for pair in pairs)
