"""Random logs of a source and its copy, with markers, holes, foreign records and restarts: a naive model.

What translates positions looks into them as it looks into brokers.
"""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from replicator.batches.codec.stretch import Stretch, clipped
from replicator.batches.registry.batch_bounds import StretchesOfLog
from replicator.offsets.index.aligned import aligned
from replicator.offsets.index.index import OffsetIndex, decode_index, index_pairs
from replicator.offsets.index.runs import Known, Pair, Window, joined
from replicator.offsets.index.sections import first_step, with_known
from replicator.offsets.translation.counted_copies import comparable
from replicator.offsets.translation.translation import PartitionFacts

FOREIGN = -1


@dataclass
class Logs:
    """Both logs, each as a mapping from offset to what a reader sees there."""

    source: set[int] = field(default_factory=set)
    target: dict[int, int] = field(default_factory=dict)
    source_end: int = 0
    target_end: int = 0
    target_start: int = 0
    copied_to: int = 0
    stored: dict[bytes, bytes] = field(default_factory=dict)
    looks: int = 0
    whole: set[int] = field(default_factory=set)
    """Where copies made in whole batches stand, which name no place."""

    gone: set[int] = field(default_factory=set)
    """Where compaction took copies."""

    def look(self, read):
        self.looks += 1
        pairs, seen, end = [], 0, min(read.until, self.target_end)
        for at in range(read.start, end):
            value = self.target.get(at)
            if value is None:
                continue
            if at in self.whole:
                end = at
                break
            seen += 1
            if value != FOREIGN:
                pairs.append(Pair(value, at))
            if (pairs and seen >= read.records) or (value != FOREIGN and value >= read.stop_at):
                end = at + 1
                break
        return Window(read.start, end, joined(pairs))

    def align(self, gap):
        """What the product does between two known copies: marks divide the gap, and the rest is counted."""
        if gap.below is None:
            return ()
        end = self.target_end if gap.above is None else gap.above.target + 1
        read = [(at, value) for at, value in self.own() if gap.below.target <= at < end]
        marked = [Pair(value, at) for at, value in read if at not in self.whole]
        counted = [Stretch(at, 1) for at, _ in read if at in self.whole]
        step = first_step(gap.below, gap.above, marked, counted, end=end)
        if step is None:
            return None
        windows, section = step
        return windows if section is None else self.counted(section, counted)

    def counted(self, section, counted):
        until = self.copied_to if section.above is None else section.above.source + 1
        records = [
            Stretch(at, 1) for at in sorted(self.source) if section.below.source <= at < until
        ]
        here = clipped(counted, section.start, section.end)
        copies, known = with_known(here, section, counted)
        complete = self.gone.isdisjoint(range(section.start, section.end))
        same = comparable(
            StretchesOfLog(records, True), StretchesOfLog(copies, complete), known=known
        )
        window = aligned(records, copies, start=section.start, end=section.end) if same else None
        return None if window is None else (window,)

    def facts(self, *, cyclic=True):
        return PartitionFacts(
            target_start=self.target_start, target_end=self.target_end, source_start=0,
            source_end=self.source_end, copied_to=self.copied_to, cyclic=cyclic,
        )  # fmt: skip

    def known(self):
        entries = decode_index(self.stored).get(("orders", 0), [])
        return Known.of(index_pairs(entries))

    def own(self):
        return [(at, value) for at, value in sorted(self.target.items()) if value != FOREIGN]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "copy", "copy", "copy", "copy", "foreign", "marker", "hole", "dropped",
                "compacted", "restart",
            ]
        ),
        st.integers(1, 40),
    ),
    max_size=40,
)  # fmt: skip


class Player:
    """Plays steps on two logs, as a lane and its surroundings would cause them."""

    def __init__(self, *, repeats):
        self.logs = Logs()
        self.repeats = repeats
        self.index = OffsetIndex("orders", 0)
        self.now = 0.0
        self.copied = []

    def copy_one(self, offset):
        logs = self.logs
        logs.target[logs.target_end] = offset
        if logs.target_end % 3 == 0:
            entries = self.index.note(offset, logs.target_end, now=self.now, at_ms=0)
            for key, value in entries:
                if value is None:
                    logs.stored.pop(key, None)
                else:
                    logs.stored[key] = value
        logs.target_end += 1
        logs.copied_to = max(logs.copied_to, offset + 1)

    def copy(self, count):
        for _ in range(count):
            self.logs.source.add(self.logs.source_end)
            self.copy_one(self.logs.source_end)
            self.copied.append(self.logs.source_end)
            self.logs.source_end += 1

    def foreign(self, count):
        for _ in range(count):
            self.logs.target[self.logs.target_end] = FOREIGN
            self.logs.target_end += 1

    def marker(self, count):
        self.logs.target_end += count

    def hole(self, count):
        self.logs.source_end += count
        self.logs.copied_to = self.logs.source_end

    def dropped(self, count):
        self.logs.source.update(range(self.logs.source_end, self.logs.source_end + count))
        self.hole(count)

    def compacted(self, count):
        """Compaction takes the older record of a key, so never the later of two copies alone."""
        target = self.logs.target
        for newest in sorted(target)[-count::2]:
            source = target.get(newest, FOREIGN)
            if source == FOREIGN:
                continue
            for at in [at for at, value in target.items() if value == source and at <= newest]:
                del target[at]
                self.logs.gone.add(at)

    def restart(self, count):
        for offset in self.copied[-count:] if self.repeats else ():
            self.copy_one(offset)


class TurnsPlayer(Player):
    """Both engines write in turns; a lane that begins notes the first record that it copies."""

    def __init__(self):
        super().__init__(repeats=False)
        self.batches = False
        self.begins = True

    def turn(self, _):
        """Another lane begins, and reads what is stored."""
        self.batches, self.begins = not self.batches, True
        entries = decode_index(self.logs.stored).get(("orders", 0), [])
        self.index = OffsetIndex("orders", 0, entries)
        self.marker(1)

    def forgotten(self, count):
        """Of old entries the map keeps a few."""
        stored = self.logs.stored
        for key in sorted(stored)[1 :: count % 3 + 1]:
            del stored[key]

    def copy_one(self, offset):
        logs = self.logs
        if self.batches:
            logs.whole.add(logs.target_end)
        if self.begins:
            entries = self.index.note(offset, logs.target_end, now=self.now, at_ms=0)
            logs.stored.update((key, value) for key, value in entries if value is not None)
            self.begins = False
        super().copy_one(offset)


def logs_of(steps, *, repeats):
    """Plays the steps; ``repeats``: a restart copies again what was copied last."""
    player = Player(repeats=repeats)
    for what, count in steps:
        player.now += 0.4 * count
        getattr(player, what)(count)
    return player.logs


def logs_in_turns(steps, *, forget):
    player = TurnsPlayer()
    for what, count in steps:
        player.now += 0.4 * count
        getattr(player, what)(count)
    if forget:
        player.forgotten(forget)
    return player.logs


def true_target(logs, wanted):
    return next((at for at, value in logs.own() if value >= wanted), logs.target_end)


def true_source(logs, position):
    return next((value for at, value in logs.own() if at >= position), logs.copied_to)
