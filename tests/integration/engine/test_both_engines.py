"""Logs that both engines wrote in turns: every position is exact, and what the target lost is found out.

Each turn is a lane of its own, as after a change of lanes: then producer ids tell whole batches from records.
"""

import contextlib

import pytest
from confluent_kafka import Producer
from lane_lab import LaneLab, numbers
from producing import produce
from topology_files import active_passive, plan_of

from replicator.control.status.translator import open_translator
from replicator.dataplane.takeover.lane_records import read_lane_records
from replicator.identifiers import checkpoints_topic
from replicator.offsets.index import index
from replicator.offsets.index.paths import translation_paths
from replicator.wire.requests.raw_log import RawLog

RECORDS = {"engine": "records", "provenance": "full"}
BATCHES = {"engine": "batches", "provenance": "path"}
LOST = "target lost records, they are copied again"


@pytest.fixture
def sparse(monkeypatch):
    """The offset map has one entry for each turn, so that much is left to marks and counting."""
    monkeypatch.setattr(index, "NOTE_SECONDS", 3600.0)


def hand_over(lab: LaneLab, lane: int) -> None:
    """Gives what a lane has stored to the next one, as a change of lanes does."""
    running = next(each for each in lab.lanes if each.spec.lane == lane)
    stored = read_lane_records(running.spec, client_id="lab")
    for number, records in ((lane + 1, stored), (lane, dict.fromkeys(stored))):
        produce(
            lab.target, checkpoints_topic(lab.name, "east"),
            ({"key": key, "value": value} for key, value in records.items()), partition=number,
        )  # fmt: skip


def write(lab: LaneLab, topic: str, turn: int) -> None:
    """Batches of many records and small ones of each kind, and transactions of which one is aborted."""

    def named(kind: str, count: int) -> list[dict[str, bytes]]:
        return [{"value": b"%d-%s-%d" % (turn, kind.encode(), each)} for each in range(count)]

    lab.produce(topic, *named("many", 60))
    for codec in ("zstd", "gzip"):
        small = {"compression.type": codec, "batch.num.messages": 3, "linger.ms": 0}
        lab.produce(topic, *named(codec, 7), **small)
    producer = Producer({**lab.source.client_settings(), "transactional.id": f"{lab.name}-{turn}"})
    producer.init_transactions(30)
    for number, end in enumerate(("commit", "abort", "commit")):
        producer.begin_transaction()
        for record in named(f"transaction-{number}", 4):
            producer.produce(topic, partition=0, **record)
        producer.flush(30)
        (producer.commit_transaction if end == "commit" else producer.abort_transaction)(30)


def places(lab: LaneLab, topic: str) -> list[tuple[int, int]]:
    """Source and target offset of every record, by its value."""
    copies = {seen.value: seen.offset for seen in lab.on_target(topic)}
    source = lab.on_source(topic)
    assert len(source) == len(copies)
    return [(seen.offset, copies[seen.value]) for seen in source]


@contextlib.contextmanager
def translating(lab: LaneLab, topic: str, engine: str):
    """Translates positions of a flow that the file gives this engine now, in both directions."""
    plan = plan_of(
        active_passive([topic], engine=engine), clusters=(lab.source, lab.target), name=lab.name
    )
    there, back = (
        translation_paths(plan, *sides, topic, 0)[0]
        for sides in (("east", "west"), ("west", "east"))
    )
    with contextlib.closing(open_translator(plan, client_id="lab")) as translator:
        translator.refresh([there, back])
        yield (
            lambda position: translator.cross(there, position),
            lambda position: translator.cross(back, position),
        )


@pytest.mark.slow
@pytest.mark.parametrize("first", [RECORDS, BATCHES], ids=["records first", "batches first"])
def test_every_position_is_exact_in_a_log_that_both_engines_wrote(lab, sparse, first):
    topic = lab.topic()
    lab.prepare(lanes=4)
    second = BATCHES if first is RECORDS else RECORDS
    for turn, engine in enumerate((first, second, first, second)):
        if turn:
            hand_over(lab, turn - 1)
        write(lab, topic, turn)
        lab.copied(topic, lane=turn, **engine)
    pairs = places(lab, topic)
    source_end, target_end = lab.end(topic), lab.end(topic, cluster=lab.target)

    for engine in ("records", "batches"):
        with translating(lab, topic, engine) as (forward, backward):
            for wanted in range(source_end + 1):
                answer = forward(wanted)
                truth = next((at for source, at in pairs if source >= wanted), target_end)
                assert (answer.grade, answer.offset) == ("exact", truth), (engine, wanted, answer)
                assert answer.probes <= 3, (engine, wanted, answer)
            for position in range(target_end + 1):
                answer = backward(position)
                truth = next((source for source, at in pairs if at >= position), source_end)
                assert (answer.grade, answer.offset) == ("exact", truth), (engine, position, answer)


@pytest.mark.parametrize("engine", ["records", "batches"])
def test_one_position_among_whole_batches_costs_one_reading_of_each_log(
    lab, sparse, monkeypatch, engine
):
    topic = lab.topic()
    lab.numbered(topic, range(300))
    lab.copied(topic, **BATCHES)
    pairs = places(lab, topic)
    read = []
    committed = RawLog.committed

    def counted(log, offset, **settings):
        read.append((log._cluster.alias, offset))
        return committed(log, offset, **settings)

    monkeypatch.setattr(RawLog, "committed", counted)
    with translating(lab, topic, engine) as (forward, _):
        answers = [forward(wanted) for wanted in (150, 151, 20)]
    assert [answer.grade for answer in answers] == ["exact"] * 3
    assert [answer.offset for answer in answers] == [pairs[at][1] for at in (150, 151, 20)]
    # Where the flow copies record by record now, a first look has to find out what stands there.
    assert sorted(alias for alias, _ in read) == ["east", "west"] + ["west"] * (engine == "records")


def cut_log(cluster, topic: str, *, end: int) -> None:
    """Cuts the log of partition 0 at an offset, as a leader has it that had not fetched the rest."""
    folder = cluster.brokers[0].data / f"{topic}-0"
    segment = folder / f"{0:020}.log"
    data, start = segment.read_bytes(), 0
    while int.from_bytes(data[start : start + 8], "big") < end:
        start += 12 + int.from_bytes(data[start + 8 : start + 12], "big")
    segment.write_bytes(data[:start])
    for state in folder.glob("*.snapshot"):
        state.unlink()  # what producers were known to have done


CHUNKS, CHUNK = 3, 20
CASES = (
    ((RECORDS, BATCHES), 0),
    ((BATCHES, RECORDS), 0),
    ((RECORDS, BATCHES, RECORDS), 1),
    ((RECORDS, BATCHES, RECORDS), 0),
    ((BATCHES, RECORDS, BATCHES), 1),
)
"""Who wrote in turns, and in whose part the log is cut."""


@pytest.mark.slow
def test_a_target_that_lost_its_end_in_the_other_engines_part_gets_it_again_once(
    east, clusters, unique, sparse
):
    (west,) = clusters("west")
    lab = LaneLab(east, west, name=unique)
    lab.prepare(lanes=sum(len(turns) for turns, _ in CASES))
    cuts: list[tuple[str, int, int, dict[str, str], int]] = []
    lane = 0
    for turns, cut_turn in CASES:
        topic = lab.topic()
        ends = []
        for turn, engine in enumerate(turns):
            if turn:
                hand_over(lab, lane - 1)
            running = lab.lane(topic, lane=lane, **engine)
            for chunk in range(CHUNKS):
                first = (turn * CHUNKS + chunk) * CHUNK
                lab.numbered(topic, range(first, first + CHUNK))
                lab.caught_up(running)
                ends.append(lab.end(topic, cluster=west))
            running.stop()
            lane += 1
        kept = cut_turn * CHUNKS + 2  # two of its three chunks
        cuts.append((topic, ends[kept - 1], kept * CHUNK, turns[-1], lane - 1))
    west.kill(0)
    for topic, end, *_ in cuts:
        cut_log(west, topic, end=end)
    west.restart(0)
    try:
        for (topic, _, kept, engine, number), (turns, _) in zip(cuts, CASES, strict=True):
            wrote = len(turns) * CHUNKS * CHUNK
            lab.numbered(topic, range(wrote, wrote + 10))
            healed = lab.copied(topic, lane=number, **engine)
            assert lab.values(topic) == numbers(range(wrote + 10)), (topic, turns)
            (loss,) = (line.fields["detail"] for line in healed.log if line.event == LOST)
            assert f"source offsets {kept} to {wrote - 1} are copied again" in loss
    finally:
        lab.close()
