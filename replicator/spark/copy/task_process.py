"""A process of this machine that copies ranges one after the other: what a Python worker of Spark is elsewhere.

``python -m replicator.spark.copy.task_process``. Orders come in on standard input and answers go out on standard
output. It ends at once when its input ends, because its driver is gone then.
"""

import os
import queue
import signal
import sys
import threading

from replicator.redaction import redact_tracebacks
from replicator.spark.base.failures import TaskError
from replicator.spark.copy.task import CopyOrder, CopyResult, copied
from replicator.spark.copy.task_messages import TaskFailure, decode_order, encode

DRIVER_GONE = 1


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
        answers.write(encode(_answer(orders.get())))
        answers.flush()


def _read(orders: "queue.SimpleQueue[CopyOrder]") -> None:
    """Ends the process with its input, also in the middle of a range: its transaction is aborted then."""
    try:
        for line in sys.stdin.buffer:
            orders.put(decode_order(line))
    except ValueError as error:
        sys.stderr.write(f"not an order: {error}\n")
    finally:  # the driver is gone, or was cut off in the middle of a line
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
