"""plan, apply, status, topics, pause and resume as people run them, against real brokers."""

import json

import pytest
from producing import produce
from topology_files import active_passive, write_topology

from replicator.control.lanes.layout import lane_in
from replicator.control.store.read import read_control
from replicator.formats.checkpoint import Checkpoint
from replicator.identifiers import checkpoints_topic
from replicator.kafka.logs.log_writer import LogWriter
from replicator.testing import commit_positions
from replicator.topology.file.load import require_plan


def topology_file(folder, name, clusters, links):
    return write_topology(folder / "topology.yaml", name, clusters, links)


def orders_link(topics, **fields):
    return active_passive(topics, name="orders", **fields)


def fill(cluster, topic, count):
    numbers = range(count)
    produce(cluster, topic, ({"key": b"key %d" % n, "value": b"value %d" % n} for n in numbers))


@pytest.fixture
def file(tmp_path, east, west, unique):
    clusters = {"east": east.topology_entry(), "west": west.topology_entry()}
    return topology_file(tmp_path, unique, clusters, [orders_link([f"{unique}.*"])])


def as_json(answer):
    code, text, errors = answer
    assert code in {0, 1, 4}, errors
    return json.loads(text)


def checkpoint(file, *stored):
    """Writes checkpoints as the lanes would, into their lanes' partitions."""
    plan = require_plan(file)
    pair = plan.pairs[0]
    block = (
        read_control(plan.topology, pair.target, client_id="test", past_open_transactions=True)
        .layout("east")
        .block("orders")
    )
    name = checkpoints_topic(plan.topology, "east")
    with LogWriter(pair.target, name, client_id="test") as writer:
        for one in stored:
            lane = lane_in(block, one.topic, one.partition)
            writer.write([(one.key(), one.value())], partition=lane)


def test_plan_shows_everything_and_writes_nothing_then_apply_does_it(run, file, east, west, unique):
    east.create_topic(f"{unique}.a", partitions=2, config={"retention.ms": "3600000"})
    fill(east, f"{unique}.a", 100)
    commit_positions(east, f"{unique}-billing", {(f"{unique}.a", 0): 1})
    for _ in range(2):  # nothing was written: the second look sees the same
        code, text, _ = run("plan", "-f", file, "-o", "json", "--detailed-exitcode")
        assert code == 4
        planned = json.loads(text)
        subjects = {(change["kind"], change["subject"]) for change in planned["changes"]}
        assert ("create-topic", f"{unique}.a") in subjects
        assert ("create-topic", f"__replicator.{unique}.control") in subjects
        assert ("create-topic", f"__replicator.{unique}.east.checkpoints") in subjects
        assert ("bind-alias", "east") in subjects
        assert planned["problems"] == []
        seed = planned["seed"][0]
        assert seed["flow"] == "east->west"
        assert seed["records"] == 100
        assert seed["bytes"] > 0
        groups = [each for each in planned["groups"] if each["group"].startswith(unique)]
        assert groups == [{"flow": "east->west", "link": "orders", "group": f"{unique}-billing"}]
    code, text, _ = run("plan", "-f", file)
    assert code == 0
    assert max(len(line) for line in text.splitlines()) <= 80
    code, _, errors = run("apply", "-f", file)
    assert code == 2
    assert "--yes" in errors
    code, text, errors = run("apply", "-f", file, "--yes", "-o", "json")
    assert code == 0, errors
    assert json.loads(text)["problems"] == []
    code, text, _ = run("plan", "-f", file, "-o", "json", "--detailed-exitcode")
    assert json.loads(text)["changes"] == []
    assert code == 0
    again = as_json(run("apply", "-f", file, "--yes", "-o", "json"))
    assert again == {"done": [], "problems": []}


def test_plan_names_a_second_alias_of_one_cluster_and_apply_refuses(run, tmp_path, east, unique):
    port = east.bootstrap_servers[0].rpartition(":")[2]
    both = {"east": east.topology_entry(), "west": {"bootstrapServers": [f"localhost:{port}"]}}
    file = topology_file(tmp_path, unique, both, [orders_link(["a"])])
    code, text, _ = run("plan", "-f", file, "-o", "json")
    assert code == 1
    assert [problem["code"] for problem in json.loads(text)["problems"]] == ["ALIAS_CONFLICT"]
    code, _, errors = run("apply", "-f", file, "--yes")
    assert code == 3
    assert "are one cluster" in errors


def test_plan_warns_where_an_existing_target_has_no_room_for_a_header_that_is_needed(
    run, tmp_path, east, west, unique
):
    for cluster in (east, west):
        cluster.create_topic(f"{unique}.a")
    for engine, warned in (("records", [f"{unique}.a"]), ("batches", [])):
        link = orders_link([f"{unique}.*"], engine=engine)
        file = topology_file(tmp_path, unique, (east, west), [link])
        planned = as_json(run("plan", "-f", file, "-o", "json"))
        assert [warning["subject"] for warning in planned["warnings"]] == warned
        for warning in planned["warnings"]:
            assert "no room for the provenance header" in warning["detail"]


def test_status_works_before_anything_was_applied(run, file):
    answer = as_json(run("status", "-f", file, "-o", "json"))
    (flow,) = answer["flows"]
    assert flow["state"] == "stopped"
    assert "not applied yet" in flow["reason"]
    assert [(link["link"], link["active"]) for link in answer["links"]] == [("orders", "east")]


def test_status_works_with_no_worker_and_says_that_one_is_missing(run, file, east, west, unique):
    topic = f"{unique}.a"
    east.create_topic(topic, partitions=2)
    run("apply", "-f", file, "--yes")
    fill(east, topic, 50)
    checkpoint(file, Checkpoint(topic, 0, offset=5, timestamp_ms=1))
    (flow,) = as_json(run("status", "-f", file, "-o", "json"))["flows"]
    assert set(flow) == {
        "flow", "link", "source", "target", "state", "reason", "lagRecords", "lagSeconds",
        "recordsPerSecond", "bytesPerSecond", "workers", "topics", "problems", "canary",
        "engine", "engineReason", "lanes",
    }  # fmt: skip
    assert (flow["lanes"]["count"], flow["lanes"]["changing"]) == (2, False)
    assert flow["lanes"]["reason"] == "first layout: 2 lanes for orders"
    assert (flow["state"], flow["reason"]) == ("stopped", "no worker runs it")
    assert [problem["code"] for problem in flow["problems"]] == ["WORKER_MISSING"]
    partitions = flow["topics"][0]["partitions"]
    assert [partition["state"] for partition in partitions] == ["waiting", "waiting"]
    assert partitions[0]["position"] == 5
    assert partitions[0]["lagRecords"] == partitions[0]["sourceEnd"] - 5
    assert partitions[1]["position"] is None
    assert 0 < flow["lagSeconds"] < 60  # the age of the oldest record that waits
    assert flow["lagRecords"] == 50 - 5
    code, text, _ = run("status", "-f", file, "--detail")
    assert code == 0
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "WORKER_MISSING" in text
    code, text, _ = run("topics", "-f", file, "-o", "json")
    assert [item["source"] for item in json.loads(text)["topics"]] == [topic]


def test_status_shows_other_flows_when_one_cluster_does_not_answer(
    run, tmp_path, east, west, unique
):
    clusters = {
        "east": east.topology_entry(),
        "west": west.topology_entry(),
        "north": {"bootstrapServers": ["127.0.0.1:1"]},
    }
    links = [
        orders_link([f"{unique}.*"]),
        {
            "name": "far", "shape": "active-passive", "active": "east", "passive": "north",
            "topics": {"include": [f"{unique}.*"]},
        },
    ]  # fmt: skip
    file = topology_file(tmp_path, unique, clusters, links)
    east.create_topic(f"{unique}.a")
    code, text, _ = run("apply", "-f", file, "--yes", "-o", "json")
    assert code == 1
    assert [problem["code"] for problem in json.loads(text)["problems"]] == ["UNREACHABLE"]
    flows = {
        flow["flow"]: flow for flow in as_json(run("status", "-f", file, "-o", "json"))["flows"]
    }
    assert flows["east->north"]["state"] == "failed"
    assert flows["east->north"]["problems"][0]["code"] == "UNREACHABLE"
    assert flows["east->west"]["topics"][0]["source"] == f"{unique}.a"
    only = as_json(run("status", "-f", file, "--flow", "east->west", "-o", "json"))["flows"]
    assert [flow["flow"] for flow in only] == ["east->west"]


def test_a_pause_is_durable_until_it_is_resumed(run, file, east, west, unique):
    topic = f"{unique}.a"
    east.create_topic(topic, partitions=2)
    run("apply", "-f", file, "--yes")
    assert (
        run("pause", "-f", file, "--flow", "east->west", "--topic", topic, "--partition", 1)[0] == 0
    )
    (flow,) = as_json(run("status", "-f", file, "-o", "json"))["flows"]
    states = [partition["state"] for partition in flow["topics"][0]["partitions"]]
    assert states == ["waiting", "paused"]
    assert run("pause", "-f", file, "--flow", "east->west")[0] == 0
    (flow,) = as_json(run("status", "-f", file, "-o", "json"))["flows"]
    assert flow["state"] == "paused"
    code, _, errors = run("resume", "-f", file, "--flow", "east->west", "--topic", topic)
    assert code == 3
    assert "is paused as a whole" in errors
    done = as_json(run("resume", "-f", file, "--flow", "east->west", "-o", "json"))
    assert len(done["resumed"]) == 2
    (flow,) = as_json(run("status", "-f", file, "-o", "json"))["flows"]
    assert {partition["state"] for partition in flow["topics"][0]["partitions"]} == {"waiting"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--flow", "east-west"), "is not a flow"),
        (("--flow", "west->east"), "has no flow 'west->east'"),
        (("--flow", "east->west", "--topic", "nothing"), "has no topic 'nothing'"),
        (("--flow", "east->west", "--partition", "0"), "a partition needs its topic"),
    ],
)
def test_pausing_what_does_not_exist_is_wrong_input(  # noqa: PLR0917 - fixtures
    run, file, east, unique, arguments, message
):
    east.create_topic(f"{unique}.a")
    run("apply", "-f", file, "--yes")
    code, _, errors = run("pause", "-f", file, *arguments)
    assert code == 2
    assert message in errors


def test_a_stopped_partition_goes_on_only_after_its_gap_was_accepted(run, file, east, unique):
    topic = f"{unique}.a"
    east.create_topic(topic)
    run("apply", "-f", file, "--yes")
    stopped = Checkpoint(topic, 0, offset=3, problem="TRUNCATED", detail="offsets 3 to 9 vanished")
    checkpoint(file, stopped)
    (flow,) = as_json(run("status", "-f", file, "-o", "json"))["flows"]
    problem = next(item for item in flow["problems"] if item["code"] == "TRUNCATED")
    assert problem["subject"] == f"{topic}/0"
    assert "--accept-gap" in problem["remedy"]
    assert flow["topics"][0]["partitions"][0]["state"] == "stopped"
    done = as_json(
        run(
            "resume",
            "-f",
            file,
            "--flow",
            "east->west",
            "--topic",
            topic,
            "--accept-gap",
            "-o",
            "json",
        )
    )
    assert [(gap["topic"], gap["partition"], gap["from"]) for gap in done["gaps"]] == [
        (topic, 0, 3)
    ]
    plan = require_plan(file)
    gap = read_control(plan.topology, plan.cluster("west"), client_id="t").gap("east", topic, 0)
    assert (gap.problem, gap.detail) == ("TRUNCATED", "offsets 3 to 9 vanished")
    assert gap.token
    assert "@" in gap.by
    (flow,) = as_json(run("status", "-f", file, "-o", "json"))["flows"]
    assert flow["topics"][0]["partitions"][0]["state"] == "waiting"
    code, _, _ = run("resume", "-f", file, "--flow", "east->west", "--topic", "x", "--accept-gap")
    assert code == 2
