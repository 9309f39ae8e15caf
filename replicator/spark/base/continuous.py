"""Round after round: what ``--continuous`` means for every command that knows it."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from replicator.clock import Clock
from replicator.errors import ReplicatorError, UnknownOutcomeError
from replicator.spark.base.failures import spark_failures

Result = TypeVar("Result")


def continuously(
    round_of_work: Callable[[], Result],
    *,
    interval_seconds: float,
    clock: Clock,
    on_failure: Callable[[ReplicatorError], None],
) -> Iterator[Result]:
    """Yields the result of each round, for ever.

    A cluster that is unreachable for a while ends nothing: ``on_failure`` gets that round's error, and the
    next round does its work too, because a round takes whatever earlier ones have not stored.

    Raises:
        ReplicatorError: a failure that does not pass with time.
    """
    while True:
        began = clock.monotonic()
        try:
            with spark_failures():
                result = round_of_work()
        except ReplicatorError as error:
            if not (error.retriable or isinstance(error, UnknownOutcomeError)):
                raise
            on_failure(error)
        else:
            yield result
        # From beginning to beginning, as was asked for; a long round is followed by the next at once.
        clock.sleep(max(0.0, began + interval_seconds - clock.monotonic()))
