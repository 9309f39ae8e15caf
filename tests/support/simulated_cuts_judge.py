"""What must hold of a partition whose source or target lost what it had acknowledged.

``docs/guarantees.md`` says it: nothing that the source still has is missing on the target, or it is told which gap
was given up; a target gets again what it lost, once, and that is on record. Copies of records that the source
lost may stay, but not in silence.
"""

from collections import Counter
from dataclasses import dataclass, field

from simulated_lane import PARTITIONS, TOPIC, World

from replicator.formats.checkpoint import Checkpoint, decode_checkpoints

OTHERS = b"of others"
"""What others write on the target beside the lane."""


@dataclass(slots=True)
class Damage:
    """What happened to one partition, and what lanes said of it."""

    cuts: int = 0
    losses: int = 0
    missed: bool = False
    """Whether copies vanished that a checkpoint counts."""

    orders: list[list[bytes]] = field(default_factory=list)
    """What belonged on the target before each election of the source."""

    reopened: set[bytes] = field(default_factory=set)
    """Records of the source whose transaction was open once more: their outcome may change."""

    gaps: list[tuple[int, str]] = field(default_factory=list)
    stopped: bool = False
    told: Counter[int] = field(default_factory=Counter)
    others: bool = False

    @property
    def touched(self) -> bool:
        """Whether anything happened that a plain world knows nothing of."""
        return bool(self.cuts or self.losses or self.orders or self.others)


class JudgedWorld(World):
    """A world in which logs get cut, as ``damage`` says; it knows what must hold all the same."""

    transactional: bool
    splits: bool

    def __init__(self, seed: int, **options) -> None:
        super().__init__(seed, **options)
        self.damage = [Damage() for _ in range(PARTITIONS)]

    def _found(self, partition: int) -> list[bytes]:
        values = [each["value"] for each in self.target.records(TOPIC, partition)]
        return [value for value in values if value != OTHERS]

    def _judge_partition(self, partition: int, checkpoint: Checkpoint | None) -> None:
        if not self.damage[partition].touched:
            super()._judge_partition(partition, checkpoint)
            return
        if not self.transactional:
            return
        found = self._found(partition)
        twice = [value for value, count in Counter(found).items() if count > 1]
        if twice:
            self.broken.append(f"duplicate in {partition}: {twice[:6]}")

    def _judge_end_of(self, partition: int, held: Counter[bytes]) -> None:
        damage = self.damage[partition]
        if not damage.touched:
            super()._judge_end_of(partition, held)
            return
        found = list(dict.fromkeys(self._found(partition)))
        problem = next(
            each.problem for each in self.lanes[-1]._states() if each.partition == partition
        )
        if not problem:
            self._judge_missing(partition, found, held)
        elif not damage.cuts:
            self.broken.append(f"{partition} is stopped with {problem} and lost nothing")
        if not self.transactional:
            return  # what was copied beyond the last checkpoint may be there twice, or be gone from the source
        if damage.losses and not damage.cuts:
            self._judge_loss(partition)
        self._judge_order(partition, found)

    def _judge_missing(self, partition: int, found: list[bytes], held: Counter[bytes]) -> None:
        """What the source has is on the target, or below a gap that was told."""
        damage = self.damage[partition]
        told = max((end for end, _ in damage.gaps), default=0)
        wanted, refused = set(self.expected(partition)), set(self.refused(partition))
        for offset, each in enumerate(self.source.logs[TOPIC, partition]):
            value = each.record["value"] if each.record else None
            missing = value in wanted and value not in found
            missing |= value in refused and not held[value]
            if missing and offset >= told:
                self.broken.append(f"lost in {partition}: {value[:9]} at {offset}, {damage}")

    def _judge_loss(self, partition: int) -> None:
        """A loss is on record: as often as there were losses at most, and once at least if copies were lost."""
        damage = self.damage[partition]
        count = decode_checkpoints(self.newest())[TOPIC, partition].target_loss.count
        # Where copies were undecided, older ones may have come in the place of lost ones.
        least = int(damage.missed and not self.splits)
        if not least <= count <= damage.losses:
            self.broken.append(f"{partition}: {count} losses on record, {damage}")
        if damage.gaps:
            self.broken.append(f"{partition}: the target alone lost records, and was not healed")
        if any(times > damage.losses for times in damage.told.values()):
            self.broken.append(f"{partition}: a loss was told again and again, {damage}")

    def _judge_order(self, partition: int, found: list[bytes]) -> None:
        """Copies follow each other as in one of the logs there were, but where a gap was told."""
        damage = self.damage[partition]
        orders = [*damage.orders, self.expected(partition)]
        follows = {pair for order in orders for pair in zip([b"", *order], order, strict=False)}
        breaks = [
            pair
            for pair in zip([b"", *found], found, strict=False)
            if pair not in follows and not damage.reopened.intersection(pair)
        ]
        if len(breaks) > len(damage.gaps):
            self.broken.append(f"reordered, or a gap in silence in {partition}: {breaks}, {damage}")
        if not damage.gaps and not damage.stopped and damage.cuts:
            gone = set(found) - set(orders[-1]) - damage.reopened
            if gone:
                self.broken.append(
                    f"{partition}: copies of what the source lost, in silence: {gone}"
                )
