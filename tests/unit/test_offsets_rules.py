"""Single cases of translation that the model does not single out, and the words they answer."""

from replicator.offsets.index.runs import MAX_RUNS, Known, Pair, Run, Window
from replicator.offsets.translation.sighting import OTHERS, UNMARKED, CopyMark
from replicator.offsets.translation.translate import Limits, translate
from replicator.offsets.translation.translation import (
    PartitionFacts,
    Translation,
    combine,
    exact,
    unavailable,
)


def never(_read):
    raise AssertionError("no look is needed")


def facts(**changes):
    known = {"target_start": 0, "target_end": 100, "source_start": 0, "copied_to": 50, **changes}
    return PartitionFacts(**known)


def whole(*runs, end=100, unmarked=()):
    return Known([Window(0, end, runs, unmarked)])


def ask(position, known, *, direction="forward", look=never, limits=None, **changes):
    return translate(
        direction, position, known=known, facts=facts(**changes), look=look,
        limits=limits or Limits(),
    )  # fmt: skip


def test_windows_join_where_they_touch_and_keep_what_was_known_first():
    known = Known([Window(0, 5, (Run(0, 0, 5),)), Window(8, 10, (Run(7, 8, 2),))])
    known.add(Window(3, 9, (Run(3, 3, 5), Run(7, 8))))
    assert [(one.start, one.end) for one in known.windows] == [(0, 10)]
    assert known.windows[0].runs == (Run(0, 0, 8), Run(7, 8, 2))


def test_memory_is_bounded_and_forgets_the_oldest_first():
    known = Known(Window(at, at + 1, (Run(at, at),)) for at in range(0, 2 * (MAX_RUNS + 50), 2))
    assert len(known.windows) <= MAX_RUNS
    assert known.windows[-1].start == 2 * (MAX_RUNS + 49)


def test_a_copy_that_began_at_the_end_of_the_source_has_no_older_positions():
    known = whole(Run(30, 0, 20), end=20)
    answer = ask(10, known, target_end=20, from_earliest=False)
    assert (answer.grade, answer.reason) == ("unavailable", "the copy began at source offset 30")
    assert ask(10, known, target_end=20).offset == 0
    late = ask(10, known, target_end=20, from_earliest=False, source_start=30)
    assert (late.grade, late.offset) == ("exact", 0)


def test_a_group_ahead_of_the_copy_goes_to_the_end_and_reads_the_rest_again():
    answer = ask(70, whole(Run(0, 0, 50)))
    assert (answer.grade, answer.offset, answer.records_reread) == ("bounded", 100, 20)
    assert "not come that far" in answer.reason


def test_nothing_copied_yet_is_unavailable_both_ways():
    known = Known()
    assert ask(0, known, target_end=0, copied_to=None).grade == "unavailable"
    assert ask(0, known, direction="backward", target_end=0, copied_to=None).grade == "unavailable"


def test_records_without_a_hop_are_never_passed_over_where_they_may_be_copies():
    known = whole(Run(0, 0, 10), Run(20, 30, 10), unmarked=(15, 16))
    answer = ask(12, known)
    assert (answer.grade, answer.offset, answer.records_reread) == ("bounded", 15, 2)
    assert ask(12, known, cyclic=True).offset == 30
    back = ask(14, known, direction="backward")
    assert (back.grade, back.offset) == ("bounded", 10)


def test_copies_without_their_place_are_translated_from_the_index_alone():
    known = Known.of([Pair(10, 12), Pair(20, 25), Pair(40, 60)])
    answer = ask(30, known, marked=False)
    assert (answer.grade, answer.offset, answer.records_reread) == ("bounded", 26, 9)
    assert ask(20, known, marked=False).offset == 25
    assert ask(21, known, marked=False).grade == "exact"
    assert "provenance: path" in answer.reason


def test_out_of_time_gives_the_best_that_is_known_and_never_more():
    known = Known.of([Pair(10, 12), Pair(40, 60)])
    answer = translate("forward", 30, known=known, facts=facts(), look=never, in_time=lambda: False)
    assert (answer.grade, answer.offset, answer.records_reread) == ("bounded", 13, 19)
    assert "in time" in answer.reason
    back = translate("backward", 30, known=known, facts=facts(), look=never, in_time=lambda: False)
    assert (back.grade, back.offset, back.records_reread) == ("bounded", 11, 17)


def test_what_the_source_has_lost_cannot_be_gone_back_to():
    answer = ask(5, whole(Run(0, 0, 50)), direction="backward", source_start=20)
    assert answer.grade == "unavailable"
    assert "source does not have" in answer.reason


def test_a_target_position_below_the_log_start_is_bounded_by_the_index_or_unavailable():
    known = Known.of([Pair(3, 4), Pair(40, 60)])
    answer = ask(10, known, direction="backward", target_start=30)
    assert (answer.grade, answer.offset, answer.records_reread) == ("bounded", 4, 5)
    assert ask(2, known, direction="backward", target_start=30).grade == "unavailable"


def test_an_emptied_target_is_unavailable_until_the_group_is_at_the_end():
    arguments = {"target_start": 100, "target_end": 100}
    assert ask(20, Known(), **arguments).grade == "unavailable"
    assert ask(50, Known(), **arguments).offset == 100
    assert ask(20, Known(), source_start=50, **arguments).offset == 100


def test_several_origins_meet_at_the_least_position():
    near, far = exact(10, low=8), exact(20, low=15)
    answer = combine([("east", near), ("west", far)])
    assert (answer.grade, answer.offset, answer.records_reread) == ("bounded", 10, 5)
    assert combine([("east", exact(10, low=8)), ("west", exact(12, low=9))]).grade == "exact"
    assert combine([("east", near), ("west", unavailable("gone"))]).reason == (
        "records of west: gone"
    )
    alone = Translation("bounded", 4, 2, "why", 4, 1)
    assert combine([("east", alone)]) == alone


def test_copies_are_recognised_by_their_last_hop():
    mark = CopyMark("east", "orders", 3, replayed=frozenset({9}))

    def offset(*values):
        return mark.source_offset([("replicator-hops", value) for value in values])

    assert offset(b"east/orders/3/17") == 17
    assert offset(b"west/orders/3/5 east/orders/3/18") == 18
    assert offset(b"east/orders/3/18 west/orders/3/5") == OTHERS
    assert offset(b"east/orders/30/17") == OTHERS
    assert offset(b"east/orders/3/9") == OTHERS  # put back from quarantine: out of order
    assert offset(b"east") == UNMARKED
    assert offset(b"not ours!") == UNMARKED
    assert mark.source_offset(None) == UNMARKED
