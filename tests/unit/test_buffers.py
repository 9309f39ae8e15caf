"""Buffers of responses: few sizes, used again, and never more kept than allowed."""

from hypothesis import given
from hypothesis import strategies as st

from replicator.batches.network.buffers import MOST_FREE_BYTES, Buffer, BufferPool
from replicator.batches.network.io_loop import TRIM_SECONDS, IoLoop
from replicator.testing import ManualClock

_MEGABYTE = 1024 * 1024


def test_a_slightly_larger_response_uses_the_buffer_of_the_one_before() -> None:
    """What grew memory by a step each time: a response of 1.9 MB, then one of 2.0."""
    pool = BufferPool()
    first = pool.take(1_900_000)
    data = first.data
    first.release()
    assert pool.take(2_000_000).data is data


def test_a_buffer_is_free_after_its_last_user_only() -> None:
    pool = BufferPool()
    buffer = pool.take(_MEGABYTE)
    buffer.hold()
    buffer.release()
    assert pool.free_bytes == 0
    assert pool.take(_MEGABYTE).data is not buffer.data
    buffer.release()
    assert pool.free_bytes == _MEGABYTE


def test_small_buffers_are_not_kept() -> None:
    pool = BufferPool()
    small = pool.take(100)
    assert len(small.data) == 100
    small.release()
    assert pool.free_bytes == 0


def test_what_nobody_needs_is_let_go_of() -> None:
    """After a burst, and when answers have another size: a pool that is full would keep none of those, forever."""
    pool = BufferPool()
    for buffer in [pool.take(_MEGABYTE) for _ in range(40)]:
        buffer.release()
    assert pool.free_bytes == MOST_FREE_BYTES
    pool.trim()
    in_use = [pool.take(_MEGABYTE), pool.take(_MEGABYTE)]
    assert pool.free_bytes == MOST_FREE_BYTES - 2 * _MEGABYTE
    for buffer in in_use:
        buffer.release()
    pool.trim()
    assert pool.free_bytes == 2 * _MEGABYTE
    large = pool.take(16 * _MEGABYTE)
    large.release()
    assert pool.take(16 * _MEGABYTE).data is large.data
    pool.trim()
    assert pool.free_bytes == 0


def test_a_lane_that_rests_lets_go_of_them_too() -> None:
    """Its loop turns though nothing comes; nothing else would free what a burst needed."""
    clock = ManualClock()
    loop = IoLoop(clock)
    try:
        loop.pool.take(_MEGABYTE).release()
        for _ in range(2):
            assert loop.pool.free_bytes == _MEGABYTE
            clock.advance(TRIM_SECONDS + 1)
            loop.turn(0)
        assert loop.pool.free_bytes == 0
    finally:
        loop.close()


@given(
    st.lists(
        st.tuples(st.sampled_from(["take", "release", "trim"]), st.integers(1, 6 * _MEGABYTE)),
        max_size=60,
    )
)
def test_buffers_are_large_enough_and_of_one_user_and_few_are_kept(
    steps: list[tuple[str, int]],
) -> None:
    """Whatever order they are taken and given back in."""
    pool, used = BufferPool(), list[Buffer]()
    for step, number in steps:
        if step == "trim":
            pool.trim()
        elif step == "release" and used:
            used.pop(number % len(used)).release()
        else:
            buffer = pool.take(number)
            assert len(buffer.data) >= number
            assert all(buffer.data is not other.data for other in used)
            used.append(buffer)
        assert 0 <= pool.free_bytes <= MOST_FREE_BYTES
    for buffer in used:
        buffer.release()
    assert pool.free_bytes <= MOST_FREE_BYTES
    pool.trim()
    pool.trim()
    assert pool.free_bytes == 0
