"""A process of this machine that copies ranges one after the other: what a Python worker of Spark is elsewhere.

``python -m replicator.spark.copy.task_process``. Pickled orders come in on standard input and pickled answers go out
on standard output. It ends at once when its input ends, because its driver is gone then.
"""

import os
import pickle
import queue
import signal
import sys
import threading
from dataclasses import dataclass

from replicator.redaction import redact_tracebacks
from replicator.spark.base.failures import TaskError
from replicator.spark.copy.task import CopyOrder, CopyResult, copied

DRIVER_GONE = 1


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """Why a range was not copied, as ``as_replicator_error`` reads it."""

    text: str


def main() -> None:
    """Takes orders until there are no more."""
    redact_tracebacks()
    # Ctrl-C is the driver's, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not get between answers
    orders: queue.SimpleQueue[CopyOrder] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(orders,), name="orders", daemon=True).start()
    while True:
        pickle.dump(_answer(orders.get()), answers)
        answers.flush()


def _read(orders: "queue.SimpleQueue[CopyOrder]") -> None:
    """Ends the process with its input, also in the middle of a range: its transaction is aborted then."""
    while True:
        try:
            orders.put(pickle.load(sys.stdin.buffer))  # noqa: S301  written by the driver that started us
        except (EOFError, OSError, pickle.UnpicklingError):
            os._exit(DRIVER_GONE)


def _answer(order: CopyOrder) -> CopyResult | TaskFailure:
    try:
        return copied(order)
    except TaskError as error:
        return TaskFailure(str(error))
    except Exception as error:  # noqa: BLE001  the driver decides what becomes of it
        return TaskFailure(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
