"""Positions translated against what stands in the logs of real clusters."""

import json
import random

from confluent_kafka import TopicPartition
from producing import produce

from replicator.testing import wait_until


def copies(log, alias):
    """Target offset and source offset of every copy from a cluster."""
    return [
        (offset, int(last.rsplit("/", 1)[1]))
        for offset, last in log
        if last is not None and last.startswith(f"{alias}/")
    ]


def test_every_position_is_exact_both_ways_across_markers_and_aborted_ranges(
    pair, replicating, translate, run
):
    plan = pair.topology()
    pair.east.create_topic(pair.topic)
    pair.write(pair.east, 700)
    pair.write_transactions(pair.east, [10, -30, 1, 1, 400, -5, 2])
    pair.write(pair.east, 300)
    total = 700 + 414 + 300
    replicating(expect={(pair.west, pair.topic, 0): total})
    log, end = pair.log_of(pair.west)
    own = copies(log, "east")
    assert len(own) == total
    _, source_end = pair.log_of(pair.east)
    wanted = [*range(0, source_end + 1, 7), source_end - 1, source_end]
    answers = translate(plan, "east", "west", pair.topic, *wanted)
    for offset, answer in zip(wanted, answers, strict=True):
        truth = next((at for at, source in own if source >= offset), end)
        assert (answer.grade, answer.offset, answer.records_reread) == ("exact", truth, 0), offset
    assert max(answer.probes for answer in answers) <= 3
    places = [*range(0, end + 1, 11), end]
    back = translate(plan, "west", "east", pair.topic, *places)
    for offset, answer in zip(places, back, strict=True):
        truth = next((source for at, source in own if at >= offset), None)
        assert answer.grade == "exact"
        if truth is None:  # past the last copy: all that was copied counts as read
            assert own[-1][1] < answer.offset <= source_end
        else:
            assert answer.offset == truth, offset
    options = ("--flow", "east->west", "--topic", pair.topic, "--partition", 0, "-f", pair.file)
    code, text, errors = run("offsets", "translate", *options, "--offset", 900, "-o", "json")
    assert code == 0, errors
    truth = next(at for at, source in own if source >= 900)
    answer = json.loads(text)
    assert {key: answer[key] for key in ("targetOffset", "grade", "recordsReread")} == {
        "targetOffset": truth, "grade": "exact", "recordsReread": 0,
    }  # fmt: skip
    code, text, _ = run("offsets", "translate", *options, "--offset", truth, "--reverse")
    assert code == 0
    source = next(source for at, source in own if at >= truth)
    assert f"is east {pair.topic}/0 at {source} (exact)" in " ".join(text.split())
    ahead = run("offsets", "translate", *options, "--offset", source_end + 50, "-o", "json")
    assert json.loads(ahead[1])["grade"] == "bounded"
    assert run("offsets", "translate", "--flow", "east->west", "--topic", "other",
               "--partition", 0, "--offset", 1, "-f", pair.file)[0] == 2  # fmt: skip


def test_a_target_that_lost_its_oldest_records_says_so(pair, replicating, translate):
    plan = pair.topology()
    pair.east.create_topic(pair.topic)
    pair.write(pair.east, 400)
    replicating(expect={(pair.west, pair.topic, 0): 400})
    own = copies(pair.log_of(pair.west)[0], "east")
    trimmed = own[100][0]
    pair.west.admin().delete_records([TopicPartition(pair.topic, 0, trimmed)])[
        TopicPartition(pair.topic, 0)
    ].result(20)
    lost, first, later = translate(plan, "east", "west", pair.topic, 50, 100, 250)
    assert (lost.grade, lost.offset) == ("unavailable", None)
    assert "older than" in lost.reason
    assert (first.grade, first.offset) == ("exact", trimmed)
    assert (later.grade, later.offset) == ("exact", own[250][0])


def test_two_clusters_writing_the_same_topic_skip_nothing(pair, replicating, translate):
    plan = pair.topology(shape="active-active", naming="identity")
    for cluster in (pair.east, pair.west):
        cluster.create_topic(pair.topic)
    for number in (40, 3, 60, 1):
        pair.write(pair.east, number)
        pair.write(pair.west, number * 2)
    total = 104
    replicating(expect={(pair.west, pair.topic, 0): total, (pair.east, pair.topic, 0): 2 * total})
    east, east_end = pair.log_of(pair.east)
    west, _ = pair.log_of(pair.west)

    def identity(here, offset, last):
        if last is None:
            return here, offset
        alias, _, _, source = last.split("/")
        return alias, int(source)

    wanted = sorted(random.Random(7).sample(range(east_end + 1), 40))
    for offset, answer in zip(
        wanted, translate(plan, "east", "west", pair.topic, *wanted), strict=True
    ):
        assert answer.grade in {"exact", "bounded"}
        read = {identity("east", at, last) for at, last in east if at < offset}
        left = {identity("west", at, last) for at, last in west if at >= answer.offset}
        assert len(read | left) == 3 * total
        assert len(read & left) <= answer.records_reread


def test_prefixed_copies_translate_both_ways_and_back_to_their_origin(pair, replicating, translate):
    plan = pair.topology(shape="active-active", naming="prefix")
    pair.east.create_topic(pair.topic)
    pair.write(pair.east, 120)
    copy = f"east.{pair.topic}"
    replicating(expect={(pair.west, copy, 0): 120})
    own = copies(pair.log_of(pair.west, copy)[0], "east")
    (there,) = translate(plan, "east", "west", pair.topic, 77)
    assert (there.grade, there.offset) == ("exact", own[77][0])
    (back,) = translate(plan, "west", "east", copy, there.offset)
    assert (back.grade, back.offset) == ("exact", 77)


def test_a_record_is_traced_over_both_clusters(pair, replicating, run):
    pair.topology()
    pair.east.create_topic(pair.topic)
    pair.write(pair.east, 30)
    replicating(expect={(pair.west, pair.topic, 0): 30})
    own = copies(pair.log_of(pair.west)[0], "east")
    options = ("--topic", pair.topic, "--partition", 0, "-f", pair.file, "-o", "json")
    code, text, errors = run("offsets", "trace", "--cluster", "east", "--offset", 20, *options)
    assert code == 0, errors
    forward = [(place["cluster"], place["offset"], place["state"])
               for place in json.loads(text)["places"]]  # fmt: skip
    assert forward == [("east", 20, "origin"), ("west", own[20][0], "copy")]
    code, text, _ = run("offsets", "trace", "--cluster", "west", "--offset", own[20][0], *options)
    backward = [(place["cluster"], place["offset"], place["state"])
                for place in json.loads(text)["places"]]  # fmt: skip
    assert backward == forward
    assert run("offsets", "trace", "--cluster", "west", "--offset", 9_999, *options)[0] == 1


def test_positions_stay_exact_where_both_logs_were_compacted(pair, replicating, translate):
    """Keys are written again and again, so most records vanish on both sides, at different times."""
    quick = {
        "cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01",
        "min.compaction.lag.ms": "0", "max.compaction.lag.ms": "1000",
    }  # fmt: skip
    plan = pair.topology()
    pair.east.create_topic(pair.topic, config=quick)
    produce(
        pair.east,
        pair.topic,
        ({"key": b"key-%d" % (number % 100), "value": b"%d" % number} for number in range(3_000)),
    )

    def compacted():
        # Only closed segments are cleaned.
        produce(pair.east, pair.topic, [{"key": b"roll", "value": b"roll"}])
        return all(len(pair.log_of(each)[0]) < 1_500 for each in (pair.east, pair.west))

    replicating(
        expect_position={(pair.topic, 0): 3_000},
        then=lambda: wait_until(
            compacted, timeout_seconds=90, interval_seconds=1.0, describe="both logs compacted"
        ),
    )
    wanted = [*range(0, 3_000, 97), 2_899, 2_900, 2_999, 3_000]

    def undisturbed():
        """The target's log and the answers about it, where it was not compacted meanwhile."""
        log, _ = pair.log_of(pair.west)
        answers = translate(plan, "east", "west", pair.topic, *wanted)
        return (copies(log, "east"), answers) if pair.log_of(pair.west)[0] == log else None

    own, answers = wait_until(
        undisturbed, timeout_seconds=60, describe="answers about a log that stayed as it was"
    )
    assert own
    for offset, answer in zip(wanted, answers, strict=True):
        unread = [at for at, source in own if source >= offset]
        if unread:
            between = [at for at, source in own if answer.offset <= at and source < offset]
            assert answer.grade == "exact", (offset, answer)
            assert answer.offset <= unread[0], (offset, answer)
            assert not between, (offset, answer)
