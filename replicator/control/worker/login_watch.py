"""Whether the logins of a worker's clusters will hold: problems and ends, for status and metrics."""

import threading
import time

import structlog

from replicator.logins.cluster_login import ClusterLogin, login_of
from replicator.observability.snapshot import LoginMetrics
from replicator.problem import Problem
from replicator.topology.plan import Plan

log = structlog.get_logger("logins")

LOOK_SECONDS = 2.0


class LoginWatch(threading.Thread):
    """Holds the logins of all clusters of the plan, so that they are followed; logs what changes."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(name="login-watch", daemon=True)
        self._stopping = threading.Event()
        self._logins: tuple[ClusterLogin, ...] = ()
        self._told: dict[str, Problem] = {}
        self._versions: dict[str, int] = {}
        self.follow(plan)

    def follow(self, plan: Plan) -> None:
        """From now on the clusters of this plan."""
        self._logins = tuple(map(login_of, plan.clusters))

    def run(self) -> None:
        """Looks every two seconds until stopped; ends at once where no login can change."""
        while not self._stopping.wait(LOOK_SECONDS):
            problems = self.problems()
            for login in self._logins:
                self._tell(login, problems.get(login.cluster.alias))

    def stop(self) -> None:
        """Ends the thread soon."""
        self._stopping.set()

    def problems(self) -> dict[str, Problem]:
        """What will become, or is, a refused login, by cluster."""
        found = ((login.cluster.alias, login.problem()) for login in self._logins)
        return {str(alias): problem for alias, problem in found if problem is not None}

    def metrics(self) -> tuple[LoginMetrics, ...]:
        """How long what clients log in with still holds."""
        now = time.time()
        return tuple(
            LoginMetrics(str(login.cluster.alias), kind, ends_at - now)
            for login in self._logins
            for kind, ends_at in sorted(login.expiries().items())
        )

    def _tell(self, login: ClusterLogin, problem: Problem | None) -> None:
        alias = str(login.cluster.alias)
        before = self._told.get(alias)
        if problem is None:
            self._told.pop(alias, None)
        elif before is None or before.detail != problem.detail:
            self._told[alias] = problem
            log.warning("login will not hold", cluster=alias, code=problem.code,
                        problem=problem.detail, remedy=problem.remedy)  # fmt: skip
        known = self._versions.get(alias, login.version)
        self._versions[alias] = login.version
        if known and login.version != known:
            log.info("new password or certificate in use", cluster=alias)
