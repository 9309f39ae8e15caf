"""The invariant of the start decision, for any checkpoint, source and policy."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from replicator.dataplane.takeover.start_position import SourceLog, decide_start
from replicator.formats.checkpoint import Checkpoint, decode_checkpoint
from replicator.policy.values import StartFrom

offsets = st.integers(0, 100)
ids = st.sampled_from(["", "A", "B"])
tokens = st.sampled_from(["", "t1", "t2"])
problems = st.sampled_from(["", "TRUNCATED", "RECREATED", "TARGET_REFUSES"])
checkpoints = st.builds(
    Checkpoint,
    topic=st.just("t"),
    partition=st.just(0),
    offset=offsets,
    topic_id=ids,
    problem=problems,
    detail=st.text(max_size=5),
    accepted_gap=tokens,
)
sources = st.builds(
    lambda low, more, topic_id: SourceLog(topic_id, low, low + more), offsets, offsets, ids
)
unreadables = st.none() | st.builds(lambda low, more: (low, low + more), offsets, offsets)
policies = st.sampled_from(["stop", "report"])


@given(checkpoints, sources, policies, tokens, unreadables)
def test_no_record_is_passed_that_was_neither_copied_nor_declared_lost(
    checkpoint, facts, policy, token, unreadable
):
    decision = decide_start(
        checkpoint,
        facts,
        start_from=StartFrom(),
        on_truncation=policy,
        accept_gap=token,
        unreadable=unreadable,
    )
    if decision.problem:
        assert decision.offset == checkpoint.offset
        assert decision.lost is None
    elif decision.offset != checkpoint.offset:
        assert decision.lost is not None, "moved without a word"
        assert decision.store
        assert facts.earliest <= decision.offset <= facts.latest
    else:
        recreated = bool(
            checkpoint.topic_id and facts.topic_id and checkpoint.topic_id != facts.topic_id
        )
        assert not recreated or decision.lost is not None


@given(checkpoints, sources, tokens, unreadables)
def test_under_the_stop_policy_only_a_fresh_token_lets_go_of_anything(
    checkpoint, facts, token, unreadable
):
    decision = decide_start(
        checkpoint,
        facts,
        start_from=StartFrom(),
        on_truncation="stop",
        accept_gap=token,
        unreadable=unreadable,
    )
    if decision.lost is not None:
        assert token
        assert token != checkpoint.accepted_gap
        assert decision.accepted_gap == token


@given(checkpoints, sources, policies, tokens, unreadables)
def test_asking_again_after_storing_the_decision_changes_nothing(
    checkpoint, facts, policy, token, unreadable
):
    def ask(stored: Checkpoint):
        return decide_start(
            stored,
            facts,
            start_from=StartFrom(),
            on_truncation=policy,
            accept_gap=token,
            unreadable=unreadable,
        )

    first = ask(checkpoint)
    kept = checkpoint.topic_id if first.problem else facts.topic_id
    stored = Checkpoint(
        "t", 0, first.offset, topic_id=kept, problem=first.problem, detail=first.detail,
        accepted_gap=first.accepted_gap,
    )  # fmt: skip
    again = ask(stored)
    assert (again.offset, again.problem, again.lost) == (first.offset, first.problem, None)
    assert not again.store


@given(
    checkpoints,
    st.dictionaries(st.sampled_from(["new", "later"]), st.integers(-(2**53), 2**53), max_size=2),
)
def test_a_checkpoint_reads_back_as_it_was_with_fields_of_newer_releases(checkpoint, extra):
    written = replace(checkpoint, extra=extra)
    assert decode_checkpoint(written.key(), written.value()) == written
