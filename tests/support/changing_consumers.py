"""Lanes that go over from one consumer to another and back at any moment, for schedules on virtual time."""

from simulated_consumer import SimulatedConsumer
from simulated_lane import World

from replicator.dataplane.session.paced_consumer import PacedConsumer


class _LateConsumer(SimulatedConsumer):
    """Brings nothing for a while behind each assignment, as a client that has to connect first."""

    _silent = 0

    def incremental_assign(self, partitions):
        super().incremental_assign(partitions)
        self._silent = self._weather.random.randrange(4)

    def consume(self, most=1, _timeout=0):
        if not self._silent:
            return super().consume(most)
        self._silent -= 1
        self._weather.moment("consume")
        return []


class _Restless(PacedConsumer):
    """Goes over at random instead of by the pace."""

    def __init__(self, world: "ChangingWorld") -> None:
        super().__init__(
            world.late_consumer(), open_paced=world.late_consumer,
            close_paced=_LateConsumer.close, clock=world.clock,
        )  # fmt: skip
        self._world = world

    def go(self, *, paced, states):
        del paced
        self._not_before = 0.0
        super().go(paced=self._world.random.random() < 0.5, states=states)


class ChangingWorld(World):
    """Its lanes read with such consumers."""

    def late_consumer(self):
        return _LateConsumer(self.source, self)

    def new_consumer(self):
        return _Restless(self)
