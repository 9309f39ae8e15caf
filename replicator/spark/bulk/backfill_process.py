"""The process a worker starts to copy history: a bulk run that asks no questions.

``python -m replicator.spark.bulk.backfill_process TOPOLOGY FLOW``. It ends when its standard input ends,
because its worker is gone then. Without Spark on this machine, ``bulkSync: auto`` leaves the history to
the lanes; ``always`` names what is missing and fails.
"""

import logging
import os
import signal
import sys
import threading
from pathlib import Path

from replicator.clock import SystemClock
from replicator.control.backfill.handover import hand_back, read_control_past_open_transactions
from replicator.control.backfill.rights import require_rights
from replicator.control.reconcile.initial_backfill import CONTROLLER
from replicator.control.roles.read import in_force
from replicator.errors import ReplicatorError
from replicator.redaction import redact_tracebacks
from replicator.spark.bulk.run import run_bulk
from replicator.spark.copy.bulk_plan import survey, unfinished
from replicator.spark.copy.tasks import copy_tasks
from replicator.spark.session.java import SparkUnavailableError, require_spark
from replicator.spark.session.settings import SparkSettings
from replicator.topology.file.load import require_plan
from replicator.topology.plan import find_pair

CONF_PREFIX = "REPLICATOR_SPARK_"
_GRACE_SECONDS = 10.0


def settings_from(environment: "os._Environ[str]") -> SparkSettings:
    """``REPLICATOR_SPARK_MASTER`` and ``REPLICATOR_SPARK_PROPERTIES``: a worker has no such options."""
    properties = environment.get(f"{CONF_PREFIX}PROPERTIES")
    return SparkSettings(
        master=environment.get(f"{CONF_PREFIX}MASTER"),
        properties_file=Path(properties) if properties else None,
    )


def copy_history(topology_file: Path, flow: str) -> None:
    """Copies what the controller asked for, or leaves it to the lanes where Spark cannot run.

    Raises:
        ReplicatorError: it could not be finished; a later child goes on.
    """
    plan = in_force(require_plan(topology_file))
    pair = find_pair(plan, flow)
    clock = SystemClock()
    try:
        require_spark()
    except SparkUnavailableError as error:
        automatic = {str(one.link) for one in pair.flows if one.policy.bulk_sync.mode == "auto"}
        backfills = unfinished(read_control_past_open_transactions(plan, pair), pair)
        mine = [
            backfill
            for backfill in backfills
            if backfill.by == CONTROLLER and backfill.link in automatic
        ]
        if not mine:
            raise
        hand_back(plan, pair, mine, clock=clock)
        sys.stderr.write(f"{error.message}: the lanes copy the history\n")
        return
    found = survey(plan, pair, only_by=CONTROLLER)
    if found.ranges:
        require_rights(plan, pair, {one.record.topic: one.record.target for one in found.ranges})
        name = f"replicator seed {flow}"
        with copy_tasks(settings_from(os.environ), found, name=name) as tasks:
            run_bulk(
                tasks, plan, found,
                topology_file=topology_file, by=CONTROLLER, clock=clock,
            )  # fmt: skip


def main() -> int:
    """Runs it; the exit code is 0 when everything is copied."""
    redact_tracebacks()
    # It logs how its connections break when this process ends.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    threading.Thread(target=_end_with_input, name="worker-watch", daemon=True).start()
    try:
        copy_history(Path(sys.argv[1]), sys.argv[2])
    except ReplicatorError as error:
        sys.stderr.write(f"{error.paragraph()}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def _end_with_input() -> None:
    # Not the buffered reader: its lock, held here, would abort the process at its end.
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(_GRACE_SECONDS)  # the main thread ends tasks and the session meanwhile
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
