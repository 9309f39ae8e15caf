"""Taking over from a real MirrorMaker 2 that was stopped, or killed, under load."""

import json
import signal
from collections.abc import Iterator

import pytest
from adopt_scene import AdoptScene, exactly_once_settings, repeated

from replicator.testing import Recorder, Writer, check, scan, wait_until
from replicator.testing.checker.routes import prefix

TOPICS = {"orders": 4, "payments": 2}
PATIENCE_SECONDS = 150.0


@pytest.fixture
def scene(clusters, tmp_path) -> Iterator[AdoptScene]:
    east, west = clusters("east", "west")
    scene = AdoptScene(tmp_path, east, west)
    yield scene
    scene.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("ending", "exactly_once"),
    [
        pytest.param(signal.SIGTERM, False, id="stopped"),
        pytest.param(signal.SIGKILL, False, id="killed"),
        pytest.param(signal.SIGKILL, True, id="killed-exactly-once"),
    ],
)
def test_every_partition_goes_on_exactly_where_mirror_maker_2_stopped(scene, ending, exactly_once):
    for topic, partitions in {**TOPICS, "quiet": 1}.items():
        scene.source.create_topic(topic, partitions=partitions)
    copies = [f"east.{topic}" for topic in TOPICS]
    scene.write_properties([*TOPICS, "quiet"], **(exactly_once_settings() if exactly_once else {}))
    scene.make_topology()
    history = Recorder()
    history.expect(["east->west"])
    scene.start_mirror_maker()
    writer = Writer(
        scene.source, list(TOPICS), history=history, rate_per_second=400, seed=11
    ).start()

    # Under load, with progress stored for every partition, and more copied than was stored.
    places = {(topic, number) for topic, count in TOPICS.items() for number in range(count)}
    wait_until(
        lambda: places <= scene.progress().last_copied.keys(),
        timeout_seconds=PATIENCE_SECONDS, interval_seconds=0.5,
        describe=lambda: f"MirrorMaker 2 stores progress; its log: {scene.mirror_log()}",
    )  # fmt: skip
    refused = scene.adopt()
    assert refused.returncode == 3, refused.stdout + refused.stderr
    assert "still runs" in refused.stderr

    # It ends when it has just stored its progress and copied on.
    before = scene.progress().last_copied
    for describe, condition in (
        ("progress is stored once more", lambda: scene.progress().last_copied not in ({}, before)),
        (
            "more is copied than stored",
            lambda: exactly_once or scene.copied_beyond(copies) >= 50,
        ),
    ):
        wait_until(
            condition, timeout_seconds=PATIENCE_SECONDS, interval_seconds=0.1,
            describe=lambda text=describe: text,
        )  # fmt: skip
    if ending is signal.SIGKILL:
        scene.mirror_maker.kill()
    else:
        scene.mirror_maker.signal(ending)
        assert scene.mirror_maker.wait(60)
    writer.wait_acked(200, timeout_seconds=90)  # nobody copies these now

    # A killed worker's group lives on until its session ends; until then the answer is a refusal.
    adopted = wait_until(
        lambda: (done := scene.adopt()).returncode != 3 and done,
        timeout_seconds=PATIENCE_SECONDS, interval_seconds=1.0, describe=lambda: "adoption",
    )  # fmt: skip
    assert adopted.returncode == 0, adopted.stderr
    result = json.loads(adopted.stdout)
    lines = {
        (line["topic"], line["partition"]): line
        for flow in result["flows"]
        for line in flow["partitions"]
    }
    stored = scene.progress().last_copied
    assert {key: line["startsAt"] for key, line in lines.items() if key in places} == {
        key: stored[key] + 1 for key in places
    }
    assert lines["quiet", 0]["startsAt"] is None
    assert "stored nothing" in lines["quiet", 0]["note"]

    # What MirrorMaker 2 itself left twice, or copied without storing that it did.
    left = scan(scene.target, copies, view="left by MirrorMaker 2")
    natives = {
        seen.id: (seen.topic, seen.partition, seen.offset)
        for seen in scan(scene.source, list(TOPICS), view="source")
    }
    beyond = {seen.id for seen in left if natives[seen.id][2] > stored[natives[seen.id][:2]]}
    expected = repeated(left) + len(beyond)
    assert bool(beyond) == (ending is signal.SIGKILL and not exactly_once)

    scene.start_worker()
    writer.wait_acked(600, timeout_seconds=90)
    writer.stop()
    wait_until(
        lambda: scene.lag() == 0,
        timeout_seconds=PATIENCE_SECONDS, interval_seconds=1.0, describe=lambda: "no lag",
    )  # fmt: skip
    written = scan(scene.source, list(TOPICS), history=history)
    copied = scan(scene.target, copies, history=history)
    report = check(history.events(), guarantee="at-least-once", naming=prefix)
    assert report.clean, report.paragraph()
    duplicates = sum(finding.count for finding in report.findings)
    assert report.names() == (("duplicate",) if expected else ()), report.paragraph()
    assert duplicates == expected

    # The first record of ours in each partition is the one after the last that was stored.
    natives = {seen.id: seen for seen in written}
    theirs = {(seen.topic, seen.partition, seen.offset) for seen in left}
    first: dict[tuple[str, int], int] = {}
    for seen in copied:
        if (seen.topic, seen.partition, seen.offset) not in theirs:
            source = natives[seen.id]
            first.setdefault((source.topic, source.partition), source.offset)
    assert first == {key: stored[key] + 1 for key in places}

    _translation_knows_where_its_copies_begin(scene, stored)
    again = scene.adopt()
    assert again.returncode == 3
    assert "run" in again.stderr


def _translation_knows_where_its_copies_begin(scene, stored):
    """Copies without a header cannot be told apart: a position among them is never guessed at."""
    at = stored["orders", 0]
    place = ("--flow", "east->west", "--topic", "orders", "--partition", "0")
    for offset, grade in ((at // 2, "unavailable"), (at + 5, "exact")):
        answer = scene.replicator(
            "offsets", "translate", "-f", scene.topology, *place, "--offset", str(offset),
            "-o", "json",
        )  # fmt: skip
        assert answer.returncode == 0, answer.stderr
        assert json.loads(answer.stdout)["grade"] == grade, answer.stdout
    back = scene.replicator(
        "offsets", "translate", "-f", scene.topology, *place, "--offset", "1", "--reverse",
        "-o", "json",
    )  # fmt: skip
    assert json.loads(back.stdout)["grade"] == "unavailable", back.stdout + back.stderr
