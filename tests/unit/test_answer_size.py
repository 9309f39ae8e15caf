"""A lane asks for less at once where answers do not get through the line, and for more again later."""

from replicator.policy.capacity.answer_size import LARGER_AGAIN, SMALLER_BYTES, AnswerSize

MIB = 1024 * 1024
FIRST = LARGER_AGAIN.first_seconds


def next_session(answers, most):
    """The sizes that another client asks for: of an answer, and of a partition in it."""
    answers.session_begins()
    return answers.answer_bytes(most), answers.partition_bytes(6 * MIB)


def test_each_answer_that_does_not_come_makes_the_next_smaller_down_to_the_least():
    answers = AnswerSize()
    assert next_session(answers, 38 * MIB) == (38 * MIB, 6 * MIB)
    assert answers.change == ""
    for expected in SMALLER_BYTES:
        answers.none_came(now=1.0)
        assert "another client asks" in answers.change
        told = answers.change
        answers.none_came(now=2.0)
        assert answers.change == told, "before another client is there, nothing more is known"
        answer, partition = next_session(answers, 38 * MIB)
        assert answer == expected
        assert 32 * 1024 <= partition <= answer / 4, "eight partitions have a part of it, or four"
    answers.none_came(now=3.0)
    assert answers.change == "", "less is not asked for"


def test_no_client_is_replaced_by_one_that_asks_for_as_much():
    answers = AnswerSize()
    next_session(answers, MIB)
    answers.none_came(now=1.0)
    assert next_session(answers, MIB)[0] == 512 * 1024, "8 and 2 MiB would be no less"
    answers = AnswerSize()
    next_session(answers, 64 * 1024)
    answers.none_came(now=1.0)
    assert answers.change == ""


def test_more_is_asked_for_again_after_a_while_and_later_where_that_was_in_vain():
    answers = AnswerSize()
    next_session(answers, 38 * MIB)
    answers.look(now=10 * FIRST)
    assert answers.change == "", "it asks for all it may"
    now = 0.0
    for _ in range(2):
        answers.none_came(now=now)
        next_session(answers, 38 * MIB)
    for patience in (FIRST, 2 * FIRST, 4 * FIRST):
        answers.look(now=now + patience - 1)
        assert answers.change == ""
        now += patience
        answers.look(now=now)
        assert "8.0 MiB" in answers.change
        assert next_session(answers, 38 * MIB)[0] == 8 * MIB
        now += 10
        answers.none_came(now=now)
        assert next_session(answers, 38 * MIB)[0] == 2 * MIB


def test_on_a_line_that_is_better_again_it_comes_back_to_all_it_may():
    answers = AnswerSize()
    next_session(answers, 38 * MIB)
    for _ in SMALLER_BYTES:
        answers.none_came(now=0.0)
        next_session(answers, 38 * MIB)
    sizes, now = [], 0.0
    for _ in SMALLER_BYTES:
        now += FIRST
        answers.look(now=now)
        sizes.append(next_session(answers, 38 * MIB)[0])
    assert sizes == [512 * 1024, 2 * MIB, 8 * MIB, 38 * MIB]
    assert answers.partition_bytes(6 * MIB) == 6 * MIB
