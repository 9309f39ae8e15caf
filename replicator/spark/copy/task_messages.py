"""What the driver and a copying process of this machine say to each other: one JSON object a line.

JSON, not pickle, as between a worker and its lane processes: nothing that is sent is run.
"""

from dataclasses import dataclass

import orjson
from pydantic import TypeAdapter

from replicator.spark.copy.task import CopyOrder, CopyResult


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """Why a range was not copied, as ``as_replicator_error`` reads it."""

    text: str


_ORDERS: TypeAdapter[CopyOrder] = TypeAdapter(CopyOrder)
_ANSWERS: TypeAdapter[CopyResult | TaskFailure] = TypeAdapter(CopyResult | TaskFailure)


def encode(message: CopyOrder | CopyResult | TaskFailure) -> bytes:
    """One line, newline included."""
    return orjson.dumps(message) + b"\n"


def decode_order(line: bytes) -> CopyOrder:
    """Reads one line from the driver.

    Raises:
        pydantic.ValidationError: the line is no order.
    """
    return _ORDERS.validate_json(line)


def decode_answer(line: bytes) -> CopyResult | TaskFailure:
    """Reads one line from a process.

    Raises:
        pydantic.ValidationError: the line is no answer, or not whole.
    """
    return _ANSWERS.validate_json(line)
