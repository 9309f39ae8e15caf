"""Role changes of one link on virtual time: the product's runner, executor, steps and journal, run as they are.

Two clusters are a model (``simulated_sides.py``), and so is what is asked of them (``simulated_clients.py``).
Meanwhile applications write where they may, lanes copy in both directions by what their worker last heard of the
roles, clusters go away and come back, and other operators resume, roll back, fail over and fail back. Whoever is
about to do something may be held up there while all others act, or is killed. One seed is one schedule;
``simulated_transition_schedule.py`` runs one.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from simulated_link import Lane, apply_flow, roles_in
from simulated_sides import LINK, PLACES, Entry, OpenTransaction, Side
from topology_files import active_passive, plan_of

from replicator.control.lanes.lane_specs import lane_specs
from replicator.control.roles.open_transitions import open_transition
from replicator.control.roles.read import RolesRead
from replicator.control.store.state import ControlState
from replicator.errors import ReplicatorError, UnreachableError
from replicator.failover.report.report import TransitionReport
from replicator.failover.rules.request import Question, StepEvent, TransitionRequest
from replicator.failover.run import runner
from replicator.failover.steps.overtaken_fences import NobodysRulesError
from replicator.formats.checkpoint import Checkpoint, decode_checkpoints
from replicator.identifiers import (
    TopicPartition,
)
from replicator.testing.kit.manual_clock import ManualClock
from replicator.topology.roles import orient, role_in_force

STEPS = 30
DEEPEST = 4
OPERATORS = 3
"""How many may be at work at the same time."""


@dataclass(frozen=True, slots=True)
class Chances:
    """How often what happens, of a hundred things; whether somebody is ``killed`` or ``held_up``, of a thousand moments."""

    operator: int = 8
    lane: int = 60
    outage: int = 2
    killed: int = 4
    held_up: int = 150
    failovers: bool = True


class Killed(BaseException):
    """The process ends here."""


class Clock(ManualClock):
    """Others act while somebody waits."""

    def __init__(self, world: "World") -> None:
        super().__init__()
        self._world = world

    def sleep(self, seconds: float) -> None:
        self.advance(max(seconds, 0.4))
        self._world.moment()
        self._world.copy_meanwhile()


class World:
    """Both clusters of one link, and everybody who works with them."""

    def __init__(self, seed: int, *, chances: Chances) -> None:
        self.draw = random.Random(seed)
        self.chances = chances
        self.clock = Clock(self)
        self.plan = plan_of(
            active_passive(
                ["t"],
                lanes=1,
                fencing={"method": "acl", "principals": ["User:app"]},
            )
        )
        self.topology = self.plan.topology
        self.sides = {alias: Side(alias, PLACES, self.draw) for alias in ("east", "west")}
        self.calm = False
        self.depth = 0
        self.operators = 0
        self.lanes: list[Lane] = []
        self.used = ["east"]
        self.reports: list[TransitionReport] = []
        self.changing: list[bool] = []
        """Of each operator at work: whether he has changed rules and not written to the journal since."""

        self.left_rules = False
        self._numbers = 0
        self.sides["west"].calm = True
        apply_flow(self, self.plan.cluster("east"))
        self.sides["west"].calm = False

    def side(self, cluster: Any) -> Side:
        """The model of a cluster."""
        return self.sides[str(cluster.alias)]

    @property
    def broken(self) -> list[str]:
        """What did not hold."""
        return [each for side in self.sides.values() for each in side.broken]

    def tell(self, what: str) -> None:
        """Something did not hold."""
        self.sides["east"].broken.append(what)

    # -- who does what when ---------------------------------------------------------------------

    def moment(self) -> None:
        """Somebody is held up at this point while others act, or is killed."""
        if self.calm or self.depth >= DEEPEST or self.broken:
            return
        chance = self.draw.randrange(1000)
        if chance < self.chances.killed and self.operators:
            raise Killed
        if chance < self.chances.held_up:
            self.depth += 1
            try:
                for _ in range(self.draw.randrange(1, 5)):
                    self.something()
            finally:
                self.depth -= 1

    def something(self) -> None:
        """One thing that happens by itself."""
        chances = self.chances
        chance = self.draw.randrange(100)
        self.clock.advance(self.draw.choice((0.01, 0.1, 1.0)))
        for side in self.sides.values():
            if self.draw.randrange(100) < 20:
                side.decide_all()
        for side in self.sides.values():
            side.up = side.up or self.draw.randrange(100) < 30
        if chance < chances.outage:
            self.draw.choice(list(self.sides.values())).up = False
        elif chance < chances.outage + chances.operator:
            if self.operators < OPERATORS:
                self.operate(self._request())
        elif chance < chances.outage + chances.operator + chances.lane:
            self._copy_something()
        else:
            self.write()

    def _copy_something(self) -> None:
        if len(self.lanes) < 3 and self.draw.randrange(100) < 30:
            self.launch(stale=self.draw.randrange(100) < 40)
        elif self.lanes:
            self.draw.choice(self.lanes).step()

    # -- applications ---------------------------------------------------------------------------

    def write(self) -> None:
        """An application writes where it may, or ends its transaction."""
        side = self.sides[self.draw.choice(self.used)]
        if not side.up:
            return
        if side.transaction is not None and self.draw.randrange(100) < 60:
            side.end_transaction(self.draw.choice(("committed", "aborted")))
            return
        if not side.takes_writers():
            return
        transaction = None
        if side.transaction is None and self.draw.randrange(100) < 10:
            transaction = side.transaction = OpenTransaction(f"app-{self._numbers}")
        for _ in range(self.draw.randrange(1, 3)):
            place = self.draw.choice(PLACES)
            self._numbers += 1
            if transaction is not None:
                transaction.places.add(place)
            now_ms = round(self.clock.now() * 1000)
            side.logs[place].append(Entry(self._numbers, (), transaction, now_ms))

    # -- operators ------------------------------------------------------------------------------

    def operate(self, request: TransitionRequest) -> TransitionReport | None:
        """One command of an operator; however it ends, it is over."""
        self.operators += 1
        self.changing.append(False)
        try:
            report = runner.run_transition(
                self.plan, request, clock=self.clock, on_step=self._on_step, answer=self._answer
            )
        except (Killed, ReplicatorError) as error:
            self.last = error
            # Brokers fence nobody who changes rules: who was overtaken then, and is killed, cannot undo it.
            self.left_rules |= isinstance(error, Killed) and self.changing[-1]
            self.left_rules |= isinstance(error, NobodysRulesError)
            return None
        finally:
            self.operators -= 1
            self.changing.pop()
        self.reports.append(report)
        return report

    def _request(self) -> TransitionRequest:
        kinds = ["switchover"] * 3
        if self.chances.failovers:
            kinds += ["failover", "failback", "failback"]
        seen = [side.states[-1] for side in self.sides.values()]
        held = open_transition(seen, LINK)
        how = self.draw.choice(("new", "resume", "resume", "roll_back"))
        wanted = TransitionRequest(
            kind=self.draw.choice(kinds), link=LINK, by=f"operator-{self._numbers}",
            accept_loss=True, tail="inject", and_switch=self.draw.random() < 0.5,
            take_over=self.draw.random() < 0.5, drain_seconds=4.0, groups_seconds=1.0,
            open_transactions=self.draw.choice(("wait", "fence", "refuse")),
        )  # fmt: skip
        if held is not None and how != "new":
            go_on = {how: True}
            return replace(wanted, kind=held.kind, **go_on)
        return wanted

    def _answer(self, question: Question) -> bool:
        """Asked for consent, an operator may take hours."""
        del question
        self.moment()
        return self.calm or self.draw.randrange(100) < 90

    def _on_step(self, event: StepEvent) -> None:
        if (event.step, event.state) == ("release", "done"):
            seen = [side.states[-1] for side in self.sides.values()]
            role = role_in_force(self.plan.link(LINK), roles_in(seen))
            if role.active not in self.used:
                self.used.append(role.active)

    # -- what is asked of clusters --------------------------------------------------------------

    def read_control(self, _topology: str, cluster: Any, **how: Any) -> ControlState:
        """Stands for ``read_control``."""
        self.moment()
        side = self.side(cluster)
        side.check()
        return side.settled() if how.get("past_open_transactions") else side.states[-1]

    def read_roles(self, plan: Any, **_: Any) -> RolesRead:
        """Stands for ``read_roles``; both clusters are asked."""
        self.moment()
        states: dict[str, ControlState] = {}
        silent: dict[str, ReplicatorError] = {}
        for alias, side in self.sides.items():
            if side.up:
                states[alias] = side.states[-1]
            else:
                silent[alias] = UnreachableError(f"{alias} does not answer")
        return RolesRead(plan, states, silent)

    def read_checkpoints(
        self, _topology: str, pair: Any, **_: Any
    ) -> Mapping[TopicPartition, Checkpoint]:
        """Stands for ``read_checkpoints``."""
        self.moment()
        side = self.side(pair.target)
        side.check()
        return decode_checkpoints(side.checkpoints.get(0, {}))

    def topic_acls(self, cluster: Any) -> set[Any]:
        """Stands for ``topic_acls``."""
        self.moment()
        side = self.side(cluster)
        side.check()
        return set(side.rules)

    def open_transactions(self, cluster: Any, places: Any, **_: Any) -> list[Any]:
        """Stands for ``open_transactions``."""
        self.moment()
        side = self.side(cluster)
        side.check()
        one = side.transaction
        if one is None or not one.places.intersection(places):
            return []
        return [SimpleNamespace(transactional_id=one.id, words=lambda: one.id)]

    # -- lanes ----------------------------------------------------------------------------------

    def launch(self, *, stale: bool) -> None:
        """A worker starts lanes by what it last heard of the roles."""
        back = self.draw.randrange(1, 5) if stale else 1
        seen = {
            alias: side.states[-min(back, len(side.states))] for alias, side in self.sides.items()
        }
        link = self.plan.link(LINK)
        plan = orient(self.plan, {LINK: role_in_force(link, roles_in(seen.values()))})
        for pair in plan.pairs:
            control = seen[str(pair.target.alias)]
            specs = lane_specs(plan=plan, pair=pair, control=control, lanes=range(1))
            self.lanes += [Lane(self, spec) for spec in specs.values()]

    def copy_meanwhile(self) -> None:
        """Lanes go on while somebody waits."""
        if self.calm:
            self.copy_everything()
        elif self.depth < DEEPEST:
            for _ in range(self.draw.randrange(6)):
                self._copy_something()

    def copy_everything(self) -> None:
        """Lanes that the roles allow copy to the end; nothing disturbs them."""
        self.lanes.clear()
        self.launch(stale=False)
        for _ in range(200):
            for lane in list(self.lanes):
                lane.step()
            if not self.lanes:
                return
