"""Translation against a naive model, in logs that both engines wrote in turns."""

from hypothesis import given
from hypothesis import strategies as st
from modelled_logs import logs_in_turns, true_source, true_target

from replicator.offsets.index.runs import Known, Pair
from replicator.offsets.translation.translate import translate

TURNS = st.lists(
    st.tuples(
        st.sampled_from(["copy", "copy", "copy", "turn", "turn", "foreign", "marker", "hole"]),
        st.integers(1, 12),
    ),
    max_size=30,
)
AND_LOSSES = st.lists(
    st.tuples(
        st.sampled_from(["compacted", "dropped", "copy", "turn", "hole"]), st.integers(1, 12)
    ),
    max_size=20,
)


@given(TURNS, st.data(), st.integers(0, 3), st.booleans())
def test_positions_in_logs_that_both_engines_wrote_are_exact(steps, data, forget, marks_first):
    logs = logs_in_turns(steps, forget=forget)
    looks, aligns = [], []

    def look(read):
        looks.append(read)
        return logs.look(read)

    def align(gap):
        if marks_first and not looks:
            return ()
        aligns.append(gap)
        return logs.align(gap)

    wanted = data.draw(st.integers(0, logs.source_end))
    answer = translate(
        "forward", wanted, known=logs.known(), facts=logs.facts(), look=look, align=align
    )
    assert (answer.grade, answer.offset) == ("exact", true_target(logs, wanted))
    assert len(looks) + len(aligns) <= 4
    position = data.draw(st.integers(0, logs.target_end))
    looks.clear()
    back = translate(
        "backward", position, known=logs.known(), facts=logs.facts(), look=look, align=align
    )
    assert (back.grade, back.offset) == ("exact", true_source(logs, position))


@given(TURNS, AND_LOSSES, st.data(), st.integers(0, 3))
def test_what_both_engines_left_out_or_compaction_took_makes_no_position_skip(
    steps, losses, data, forget
):
    logs = logs_in_turns([*steps, *losses], forget=forget)
    wanted = data.draw(st.integers(0, logs.source_end))
    answer = translate(
        "forward", wanted, known=logs.known(), facts=logs.facts(), look=logs.look, align=logs.align
    )
    if answer.offset is not None:
        unread = {value for _, value in logs.own() if value >= wanted}
        assert unread <= {value for at, value in logs.own() if at >= answer.offset}
        again = [value for at, value in logs.own() if at >= answer.offset and value < wanted]
        assert len(again) <= answer.records_reread


def test_a_look_at_copies_without_a_mark_tells_nothing_and_is_not_repeated():
    logs = logs_in_turns([("turn", 1), ("copy", 12)], forget=0)
    known = Known.of([Pair(0, logs.own()[0][0]), Pair(11, logs.own()[-1][0])])
    answer = translate(
        "forward", 5, known=known, facts=logs.facts(), look=logs.look, align=lambda _: ()
    )
    assert (answer.grade, answer.offset, answer.records_reread) == ("bounded", 2, 4)
    assert "whole batches" in answer.reason
    assert logs.looks == 1
