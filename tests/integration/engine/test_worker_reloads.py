"""A running worker follows its file, its operator and its source without starting over."""

import pytest
from lane_lab import LaneLab

FLOW = "east->west"


def arrived(lab: LaneLab, topic: str) -> list[bytes | None]:
    if topic not in lab.target.admin().list_topics(timeout=20).topics:
        return []
    return lab.values(topic)


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


@pytest.fixture
def copying(lab, worker, east, west):
    """A worker that copies two topics by two links."""
    first, second = (lab.topic(on_target=False) for _ in range(2))
    for cluster in (east, west):
        worker.cluster(cluster)
    worker.link("one", "east", "west", [first], lanes=1)
    worker.link("two", "east", "west", [second], lanes=1)
    worker.start()
    for topic in (first, second):
        lab.numbered(topic, range(10))
        worker.until(lambda topic=topic: arrived(lab, topic) == numbers(10), f"all of {topic}")
    return first, second


def test_an_edited_file_touches_only_what_was_edited_and_a_broken_one_nothing(lab, worker, copying):
    first, second = copying
    takeovers = worker.takeovers()
    commits = worker.metric("replicator_transactions_total", link="two", outcome="committed")
    worker.links[0]["filters"] = [{"dropIf": {"keyPrefix": "secret"}}]
    worker.write()
    worker.until(
        lambda: len([line for line in worker.log_lines() if "topology" in line["event"]]) > 0,
        "a word about the new topology",
    )

    def dropped_now() -> bool:
        lab.produce(first, {"key": b"secret", "value": b"never"})
        return worker.metric("replicator_records_dropped_total", link="one") > 0

    worker.until(dropped_now, "the new rule at work")
    lab.produce(first, {"key": b"open", "value": b"10"})
    worker.until(lambda: arrived(lab, first)[-1] == b"10", "records of the edited link")
    assert worker.takeovers() == takeovers
    assert (
        worker.metric("replicator_transactions_total", link="two", outcome="committed") >= commits
    ), "the other link's counters must go on"

    good = worker.file.read_text()
    worker.replace(good.replace('"active-passive"', '"round-and-round"'))
    worker.until(lambda: "round-and-round" in worker.log_text(), "the refusal in the log")
    for topic in (first, second):
        lab.produce(topic, {"value": b"last"})
        worker.until(lambda topic=topic: arrived(lab, topic)[-1] == b"last", "the old one at work")
    assert worker.takeovers() == takeovers


def test_an_edit_that_contradicts_bindings_is_refused_and_the_old_plan_stays_in_force(
    lab, worker, copying
):
    first, second = copying
    takeovers, good = worker.takeovers(), worker.file.read_text()
    east, west = worker.clusters["east"], worker.clusters["west"]

    def refused(number: int, clusters, source: str) -> None:
        worker.clusters = clusters
        for link in worker.links:
            link["active"] = source
        worker.write()
        found = worker.until(lambda: worker.problems(FLOW).get("ALIAS_CONFLICT"), "the refusal")
        assert found["remedy"]
        for topic in (first, second):
            lab.produce(topic, {"value": b"%d" % number})
            worker.until(
                lambda topic=topic: arrived(lab, topic)[-1] == b"%d" % number,
                "the old plan at work",
            )
        worker.replace(good)
        worker.until(lambda: not worker.problems(FLOW), "the problem to go")

    refused(10, {"east": west, "west": east}, "east")
    refused(11, {"orient": east, "west": west}, "orient")
    assert worker.takeovers() == takeovers
    assert worker.log_text().count("edited topology refused") == 2


def test_a_pause_survives_a_restart_and_a_resume_goes_on_exactly(lab, worker, copying):
    first, second = copying
    worker.command("pause", "--flow", FLOW, "--topic", first)

    def state(topic: str) -> set[str]:
        topics = {each["source"]: each for each in worker.flow(FLOW)["topics"]}
        return {each["state"] for each in topics.get(topic, {}).get("partitions", ())}

    worker.until(lambda: state(first) == {"paused"}, "the pause in the status")
    worker.stop()
    worker.start()
    for topic in (first, second):
        lab.numbered(topic, range(10, 20))
    worker.until(lambda: arrived(lab, second) == numbers(20), "the topic that is not paused")
    assert arrived(lab, first) == numbers(10)
    worker.command("resume", "--flow", FLOW, "--topic", first)
    worker.until(lambda: arrived(lab, first) == numbers(20), "the rest after the resume")


def test_new_topics_partitions_and_settings_follow_within_seconds(lab, worker, east, west):
    from confluent_kafka.admin import NewPartitions

    kept = f"kept.{lab.name}"
    _follow(lab, worker, east, west, kept)
    admin = east.admin()
    admin.create_partitions([NewPartitions(kept, 3)])[kept].result(30)
    lab.until(
        lambda: len(admin.list_topics(kept, timeout=20).topics[kept].partitions) == 3, "growth"
    )
    lab.numbered(kept, range(3), partition=2)
    worker.until(
        lambda: [s.value for s in lab.on_target(kept) if s.partition == 2] == numbers(3),
        "records of a new partition",
    )
    _set(east, kept, "retention.ms", "43200000")
    worker.until(lambda: _config(west, kept)["retention.ms"] == "43200000", "the new setting")


@pytest.mark.slow
def test_a_deletion_follows_a_minute_later_where_the_file_says_so(lab, worker, east, west):
    kept, gone = f"kept.{lab.name}", f"gone.{lab.name}"
    _follow(lab, worker, east, west, kept, gone)
    for name in (kept, gone):
        east.delete_topic(name)
    worker.until(
        lambda: gone not in west.admin().list_topics(timeout=20).topics, "the deletion to follow"
    )
    assert len(arrived(lab, kept)) == 5


def _follow(lab, worker, east, west, kept: str, *gone: str) -> None:
    """Has a worker copy topics that appear; deletions are carried over for those in ``gone``."""
    for cluster in (east, west):
        worker.cluster(cluster)
    worker.link("kept", "east", "west", [f"{kept}*"])
    for name in gone:
        deletions = {"topics": {"deletions": "propagate"}}
        worker.link("gone", "east", "west", [f"{name}*"], sync=deletions)
    worker.start()
    worker.url()
    for name in (kept, *gone):
        east.create_topic(name, partitions=1, config={"retention.ms": "86400000"})
        lab.numbered(name, range(5))
        worker.until(lambda name=name: arrived(lab, name) == numbers(5), "a new topic")


def _set(cluster, topic: str, name: str, value: str) -> None:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

    change = ConfigResource(
        ResourceType.TOPIC,
        topic,
        incremental_configs=[ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)],
    )
    cluster.admin().incremental_alter_configs([change])[change].result(30)


def _config(cluster, topic: str) -> dict[str, str | None]:
    from confluent_kafka.admin import ConfigResource, ResourceType

    asked = ConfigResource(ResourceType.TOPIC, topic)
    found = cluster.admin().describe_configs([asked])[asked].result(30)
    return {name: entry.value for name, entry in found.items()}
