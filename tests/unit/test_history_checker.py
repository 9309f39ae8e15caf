"""Every anomaly, planted in a clean history, is caught under exactly its name; clean is clean."""

import itertools

import pytest
from synthetic_history import GROUP, LINK, NAMINGS, TOPIC, clean_history

from replicator.testing.checker.anomalies import MEANINGS, Anomaly
from replicator.testing.checker.check import check
from replicator.testing.checker.history import (
    Committed,
    Completed,
    Delivered,
    Flow,
    GroupStarted,
    Measured,
    Polled,
    Promised,
    Role,
    Salvaged,
    Scanned,
    Seen,
    Sent,
    TransactionEnded,
)
from replicator.testing.checker.routes import parse_hops

SHAPES = ("active-passive", "active-active", "hub-and-spoke", "ring")


def copies_on(history, cluster, partition=0):
    """Copies from elsewhere in one partition of a cluster."""
    return [
        each
        for each in history
        if isinstance(each, Seen)
        and each.view == "final"
        and each.cluster == cluster
        and each.partition == partition
        and not each.id.startswith(cluster)
    ]


def acknowledged(history):
    return {each.id for each in history if isinstance(each, Completed) and each.outcome == "ok"}


def replaced(history, old, new):
    return [new if each is old else each for each in history]


def without(history, unwanted):
    return [each for each in history if each is not unwanted]


def found(history, **options):
    return check(history, **options).names()


def a_copy(history, *, last=False, cluster="west"):
    """One copy of an acknowledged plain record in the middle (or at the end) of a partition."""
    known = acknowledged(history)
    chosen = [each for each in copies_on(history, cluster) if each.id in known]
    return chosen[-1] if last else chosen[len(chosen) // 2]


@pytest.fixture
def plain():
    return clean_history("active-passive", records=300, transactional=False, seed=1)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_a_clean_history_is_clean(shape, header, seed):
    report = check(clean_history(shape, header=header, seed=seed), naming=NAMINGS[shape])
    assert report.clean, report.paragraph()
    assert report.findings == ()
    assert report.counts["acknowledged"] > 100
    assert report.counts["seen"] > report.counts["acknowledged"]


def test_every_anomaly_has_a_meaning():
    assert set(MEANINGS) == set(Anomaly)


def test_lost_is_caught(plain):
    assert found(without(plain, a_copy(plain))) == ("lost",)


def test_an_unseen_tail_is_caught(plain):
    assert found(without(plain, a_copy(plain, last=True))) == ("unseen tail",)


def test_a_target_that_holds_nothing_is_an_unseen_tail(plain):
    empty = [e for e in plain if not (isinstance(e, Seen) and e.cluster == "west")]
    assert found(empty) == ("unseen tail",)


def test_duplicate_is_caught_and_tolerated_at_least_once(plain):
    planted = [*plain, a_copy(plain)._replace(offset=10_000)]
    assert found(planted) == ("duplicate",)
    assert not check(planted).clean
    report = check(planted, guarantee="at-least-once")
    assert report.clean
    assert report.findings[0].tolerated


def test_reorder_is_caught(plain):
    copy = a_copy(plain)
    assert found(replaced(plain, copy, copy._replace(offset=10_000))) == ("reorder",)


@pytest.mark.parametrize(
    "change", [{"key": "0"}, {"value": "0"}, {"headers": "0"}, {"timestamp_ms": 5}]
)
def test_divergent_is_caught(plain, change):
    copy = a_copy(plain)
    assert found(replaced(plain, copy, copy._replace(**change))) == ("divergent",)


@pytest.mark.parametrize("hops", ["east/orders/0/9999", "central/orders/0/1", "no hops at all/"])
def test_a_false_origin_is_divergent(plain, hops):
    copy = a_copy(plain)
    assert found(replaced(plain, copy, copy._replace(hops=hops))) == ("divergent",)


def test_a_header_with_aliases_alone_is_no_false_origin(plain):
    copy = a_copy(plain)
    assert found(replaced(plain, copy, copy._replace(hops="east"))) == ()


def test_phantom_is_caught_for_a_record_that_no_one_wrote(plain):
    assert found([*plain, a_copy(plain)._replace(id="east-nobody", offset=10_000)]) == ("phantom",)


def test_phantom_is_caught_for_a_failed_write(plain):
    failed = next(e for e in plain if isinstance(e, Completed) and e.outcome == "fail")
    assert found([*plain, a_copy(plain)._replace(id=failed.id, offset=10_000)]) == ("phantom",)


def test_a_copy_of_an_unknown_write_is_no_phantom(plain):
    copy = a_copy(plain)
    dropped = [e for e in plain if not (isinstance(e, Completed) and e.id == copy.id)]
    assert found(dropped) == ()


def test_aborted_is_caught():
    history = clean_history(records=300, seed=2)
    aborted = {
        e.transaction for e in history if isinstance(e, TransactionEnded) and e.outcome == "fail"
    }
    sent = next(e for e in history if isinstance(e, Sent) and e.transaction in aborted)
    planted = a_copy(history)._replace(id=sent.id, offset=10_000, hops="")
    assert found([*history, planted]) == ("aborted",)


def test_torn_is_caught_and_forbidden_on_demand():
    history = clean_history(records=300, seed=3)
    committed = {
        e.transaction for e in history if isinstance(e, TransactionEnded) and e.outcome == "ok"
    }
    members = {}
    known = acknowledged(history)
    for each in history:
        if isinstance(each, Sent) and each.transaction in committed and each.id in known:
            members.setdefault(each.transaction, []).append(each.id)
    ids = next(ids for ids in members.values() if len(ids) > 1)
    look = [
        e._replace(view="during") for e in history if isinstance(e, Seen) and e.cluster == "west"
    ]
    whole = [*history, *look]
    assert found(whole) == ()
    torn = [*history, *(each for each in look if each.id != ids[0])]
    assert found(torn) == ("torn",)
    assert check(torn).clean
    assert not check(torn, atomic_transactions=True).clean


@pytest.mark.parametrize("header", [True, False])
def test_loop_is_caught_when_a_record_is_back_at_its_origin(header):
    history = clean_history("active-active", transactional=False, header=header, seed=4)
    copy = a_copy(history)
    hops = f"{copy.hops} west/{TOPIC}/0/{copy.offset}" if header else ""
    planted = copy._replace(cluster="east", offset=10_000, hops=hops)
    assert found([*history, planted]) == ("loop",)


def test_loop_is_caught_when_a_hop_is_repeated(plain):
    copy = a_copy(plain)
    again = copy._replace(hops=f"{copy.hops} {copy.hops}")
    assert found(replaced(plain, copy, again)) == ("loop",)


def test_a_producer_that_wrote_twice_is_a_duplicate_and_no_loop(plain):
    native = next(e for e in plain if isinstance(e, Seen) and e.cluster == "east")
    assert found([*plain, native._replace(offset=10_000)]) == ("duplicate",)


@pytest.mark.parametrize("change", [{"partition": 1, "offset": 10_000}, {"topic": "east.orders"}])
def test_misrouted_is_caught(plain, change):
    copy = a_copy(plain)
    assert found(replaced(plain, copy, copy._replace(**change))) == ("misrouted",)


def test_misrouted_is_caught_on_a_cluster_the_topology_does_not_lead_to():
    history = clean_history("hub-and-spoke", transactional=False, seed=5)
    copy = a_copy(history, cluster="central")
    elsewhere = "west" if copy.id.startswith("east") else "east"
    planted = copy._replace(cluster=elsewhere, offset=10_000)
    assert found([*history, planted], naming=NAMINGS["hub-and-spoke"]) == ("misrouted",)


def delivered_on_west(history, first=0):
    copies = copies_on(history, "west")[first:]
    return [Delivered(GROUP, "west", TOPIC, 0, each.offset) for each in copies]


def failed_over(history, *, commit_at, resume_at):
    """The group reads the first copies' originals on east, commits, and resumes on west."""
    others = [e for e in history if not isinstance(e, Delivered | Committed)]
    natives = {e.id: e for e in history if isinstance(e, Seen) and e.cluster == "east"}
    originals = [natives[each.id] for each in copies_on(history, "west")]
    read = [Delivered(GROUP, "east", TOPIC, 0, each.offset) for each in originals[:commit_at]]
    done = Committed(GROUP, "east", TOPIC, 0, originals[commit_at - 1].offset + 1)
    return [*others, *read, done, *delivered_on_west(history, resume_at)]


def test_a_group_that_goes_on_exactly_where_it_was_is_clean(plain):
    assert found(failed_over(plain, commit_at=20, resume_at=20)) == ()


def test_group_skip_is_caught(plain):
    assert found(failed_over(plain, commit_at=20, resume_at=22)) == ("group skip",)


def test_a_group_that_began_at_the_end_is_not_owed_the_beginning(plain):
    latest = [e for e in plain if not isinstance(e, GroupStarted | Delivered | Committed)]
    assert found([*latest, *delivered_on_west(plain, 20)]) == ()
    assert found([*plain[:0], GroupStarted(GROUP), *latest, *delivered_on_west(plain, 20)]) == (
        "group skip",
    )


def test_group_rewind_is_caught(plain):
    assert found(failed_over(plain, commit_at=20, resume_at=17)) == ("group rewind",)


def test_group_rewind_within_what_was_promised_is_tolerated(plain):
    planted = failed_over(plain, commit_at=20, resume_at=17)
    report = check([*planted, Promised(GROUP, "reread-records", 3)])
    assert report.clean
    assert report.findings[0].count == 3
    names = found([*planted, Promised(GROUP, "reread-records", 2)])
    assert names == ("group rewind", "false RPO/RTO")


def polled_on_west(history, *, batch=10):
    """A reader on west was given every copy in partition 0, in its order."""
    return [
        Polled("r", number // batch, "west", TOPIC, 0, each.offset, each.id)
        for number, each in enumerate(copies_on(history, "west"))
    ]


def test_a_reader_that_was_given_everything_is_clean(plain):
    report = check([*plain, *polled_on_west(plain)])
    assert report.findings == ()
    assert report.counts["polled"] > 20


@pytest.mark.parametrize(("left_out", "words"), [(15, "within one"), (20, "between two")])
def test_poll_skip_is_caught_within_a_poll_and_between_polls(plain, left_out, words):
    polls = polled_on_west(plain)
    report = check([*plain, *polls[:left_out], *polls[left_out + 1 :]])
    assert report.names() == ("poll skip",)
    assert words in report.paragraph()


@pytest.mark.parametrize("back", [15, 20])
def test_nonmonotonic_poll_is_caught(plain, back):
    polls = polled_on_west(plain)
    polls[back], polls[back - 1] = polls[back - 1], polls[back]
    assert "nonmonotonic poll" in found([*plain, *polls])
    again = polled_on_west(plain)
    assert found([*plain, *again[:back], again[back - 1], *again[back:]]) == ("nonmonotonic poll",)


def test_two_readers_are_judged_each_by_itself(plain):
    polls = polled_on_west(plain)
    second = [each._replace(reader="s") for each in polls]
    both = [each for pair in zip(polls, second, strict=True) for each in pair]
    assert found([*plain, *both]) == ()


def test_an_inconsistent_offset_is_caught(plain):
    polls = polled_on_west(plain)
    other = polls[30]._replace(id=polls[3].id)
    assert found([*plain, *polls[:30], other, *polls[31:]]) == ("inconsistent offset",)
    gone = without(plain, next(e for e in copies_on(plain, "west") if e.id == polls[30].id))
    assert set(found([*gone, *polls])) == {"lost", "inconsistent offset"}


def test_an_aborted_record_that_a_reader_was_given_is_caught():
    history = clean_history(records=300, seed=2)
    aborted = {
        e.transaction for e in history if isinstance(e, TransactionEnded) and e.outcome == "fail"
    }
    sent = next(e for e in history if isinstance(e, Sent) and e.transaction in aborted)
    dirty = Polled("r", 1, "west", TOPIC, 0, 10_000, sent.id)
    assert set(found([*history, dirty])) == {"aborted", "inconsistent offset"}


def in_transactions(history, reads):
    """Plain records put into transactions T0, T1, ...; ``reads`` says who was given records of whom."""
    copies = copies_on(history, "west")
    names = sorted({name for pair in reads for name in pair})
    member = dict(zip(names, copies, strict=False))
    of = {copy.id: name for name, copy in member.items()}
    moved = [
        e._replace(transaction=of[e.id]) if isinstance(e, Sent) and e.id in of else e
        for e in history
    ]
    ended = [TransactionEnded(name, "ok") for name in names]
    polls = [
        Polled(f"r-{number}", 1, "west", TOPIC, 0, member[wrote].offset, member[wrote].id, reader)
        for number, (reader, wrote) in enumerate(reads)
    ]
    return [*moved, *ended, *polls]


@pytest.mark.parametrize(
    "circle",
    [[("T0", "T1"), ("T1", "T0")], [("T0", "T1"), ("T1", "T2"), ("T2", "T0"), ("T3", "T0")]],
)
def test_circular_reads_are_caught(plain, circle):
    assert found(in_transactions(plain, circle)) == ("circular reads",)


def test_reads_that_lead_one_way_are_clean(plain):
    reads = [("T1", "T0"), ("T2", "T0"), ("T2", "T1"), ("T3", "T2"), ("T3", "T3")]
    assert found(in_transactions(plain, reads)) == ()


def promoted(history, *, epoch_at=1_000.0):
    """West takes the role over after everything was copied."""
    return [*history, *(Role(LINK, each, 2, "west", (), epoch_at) for each in ("east", "west"))]


_numbers = itertools.count()


def native_write(cluster, *, at, epoch=None, offset=20_000):
    """An acknowledged write with its place in the log."""
    id_ = f"{cluster}-extra-{next(_numbers)}"
    sent = Sent(id_, cluster, TOPIC, 0, None, "0", "", 1, None, epoch, at)
    seen = Seen("final", cluster, TOPIC, 0, offset, id_, None, "0", "", 1, "")
    return [sent, Completed(id_, "ok", 0, offset, at + 0.1), seen]


def copied(write, *, to, offset):
    sent, done, seen = write
    return [
        *write,
        seen._replace(cluster=to, offset=offset, hops=f"{sent.cluster}/{TOPIC}/0/{done.offset}"),
    ]


def test_a_promotion_with_writes_on_the_new_side_is_clean(plain):
    assert found([*promoted(plain), *native_write("west", at=1_001)]) == ()


def test_split_brain_is_caught_when_the_old_side_still_takes_writes(plain):
    late = copied(native_write("east", at=1_002), to="west", offset=19_000)
    planted = [*promoted(plain), *native_write("west", at=1_001), *late]
    assert found(planted) == ("split brain",)


def test_split_brain_is_caught_when_two_sides_claim_one_epoch(plain):
    assert found([*promoted(plain), Role(LINK, "east", 2, "east", (), 1_001)]) == ("split brain",)


def test_epoch_regression_is_caught(plain):
    assert found([*promoted(plain), Role(LINK, "west", 1, "east", (), 1_001)]) == (
        "epoch regression",
    )


def test_late_zombie_is_caught_for_a_writer_of_a_fenced_epoch(plain):
    late = copied(native_write("east", at=1_005, epoch=1), to="west", offset=19_000)
    planted = [*promoted(plain), *native_write("west", at=1_001, epoch=2), *late]
    assert found(planted) == ("late zombie",)


def test_late_zombie_is_caught_for_a_copy_behind_the_new_sides_first_write(plain):
    copy = a_copy(plain, last=True)
    late = replaced(plain, copy, copy._replace(offset=20_001))
    planted = [*promoted(late), *native_write("west", at=1_001)]
    assert found(planted) == ("late zombie",)
    assert found([*planted, Salvaged(copy.id)]) == ()


def test_copying_is_rightful_again_after_a_failback(plain):
    back = [Role(LINK, each, 3, "east", (), 2_000.0) for each in ("east", "west")]
    again = copied(native_write("east", at=2_001, offset=30_000), to="west", offset=30_000)
    assert found([*promoted(plain), *native_write("west", at=1_001), *back, *again]) == ()


@pytest.mark.parametrize("kind", ["rpo-records", "rpo-seconds", "rto-seconds"])
def test_a_false_promise_is_caught(plain, kind):
    told = [Promised(LINK, kind, 2), Measured(LINK, kind, 3)]
    assert found([*plain, *told]) == ("false RPO/RTO",)
    assert found([*plain, Promised(LINK, kind, 3), Measured(LINK, kind, 3)]) == ()


def test_a_tail_within_the_promised_loss_is_tolerated_and_a_longer_one_is_a_false_promise(plain):
    planted = without(plain, a_copy(plain, last=True))
    report = check([*planted, Promised(LINK, "rpo-records", 1)])
    assert report.clean
    assert report.names() == ("unseen tail",)
    assert found([*planted, Promised(LINK, "rpo-records", 0)]) == ("unseen tail", "false RPO/RTO")


def test_a_cluster_that_was_never_scanned_is_not_judged(plain):
    blind = [e for e in plain if not (isinstance(e, Seen | Scanned) and e.cluster == "west")]
    report = check(blind)
    assert report.clean
    assert report.counts["clusters"] == 1


def test_relaying_is_expected_only_where_a_flow_relays():
    history = clean_history("ring", transactional=False, seed=6)
    no_relay = [e._replace(relay=False) if isinstance(e, Flow) else e for e in history]
    assert set(found(no_relay)) == {"misrouted"}


def test_hops_are_read_in_both_forms_and_nothing_else():
    assert parse_hops("") == ()
    assert parse_hops("east/a.b/0/5 west/a.b/0/7")[1] == ("west", "a.b", 0, 7)
    assert parse_hops("east west")[0].alias == "east"
    assert parse_hops("east/a/0") is None
    assert parse_hops("east/a/x/1") is None
    assert parse_hops("east  west") is None


def test_a_report_says_what_was_found_in_words(plain):
    text = check(without(plain, a_copy(plain))).paragraph()
    assert text.startswith("NOT CLEAN (writes 300,")
    assert "lost: 1, acknowledged at the source" in text
    assert "from east/orders/0/" in text
