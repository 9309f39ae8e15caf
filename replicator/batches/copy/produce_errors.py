"""What a partition answers to a batch that it did not take, and what that means for the lane. Pure."""

from replicator.batches.codec.produce_codec import Produced
from replicator.batches.copy.outgoing import Key
from replicator.batches.copy.transactions import FENCED, REPLACED
from replicator.errors import (
    FencedError,
    RecordRefusedError,
    ReplicatorError,
    TransientBrokerError,
)
from replicator.wire.connection.errors import code_error

DUPLICATE, OUT_OF_ORDER = 46, 45
RETRIED = frozenset({3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 51, 56})
"""Errors after which the same bytes are sent again."""

REFUSED = frozenset({10, 18, 32, 42, 43, 76, 87})
"""The target will never take something in this batch."""

_RIGHTS_AND_LOGIN = frozenset({29, 31, 33, 53, 58})


def produce_error(alias: str, key: Key, part: Produced) -> ReplicatorError:
    """Why a batch for ``key`` was not taken; ``alias`` is that of the target."""
    subject = f"cluster:{alias}"
    doing = f"write to {key[0]}/{key[1]}"
    if part.error in FENCED:
        return FencedError(f"cannot {doing}: {REPLACED}", subject=subject)
    mapped = code_error(part.error, subject=subject, doing=doing, detail=part.message)
    if part.error in REFUSED:
        return RecordRefusedError(mapped.message, subject=f"{key[0]}/{key[1]}")
    if part.error in RETRIED or part.error in _RIGHTS_AND_LOGIN:
        return mapped
    return TransientBrokerError(mapped.message, subject=subject, remedy=mapped.remedy)
