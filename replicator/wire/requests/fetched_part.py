"""What a fetch of one partition brought."""

from typing import Any

from replicator.errors import HeldBackError
from replicator.policy.capacity.broker_quota import RAISE_QUOTA
from replicator.wire.connection.errors import code_error


def fetched_part(answer: Any, *, subject: str, doing: str) -> Any:  # noqa: ANN401 - the library has no types
    """The part of the response that is about the partition; its own error is left to the caller.

    Raises:
        HeldBackError: a quota is used up: the broker answers at once, without any partition.
        ReplicatorError: the broker refuses the request.
    """
    if answer.error_code:
        raise code_error(answer.error_code, subject=subject, doing=doing)
    if not answer.responses:
        raise HeldBackError(
            f"cannot {doing} now: a quota of the cluster holds us back for {answer.throttle_time_ms / 1000:g} s",
            subject=subject,
            remedy=RAISE_QUOTA,
        )
    return answer.responses[0].partitions[0]
