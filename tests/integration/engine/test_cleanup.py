"""`replicator cleanup`: what a link left goes, what others use and every record of a user stay."""

import json

import pytest
from lane_lab import LaneLab

from replicator.cli.main import run_command
from replicator.testing import wait_until


@pytest.fixture
def cleanup(worker, capsys):
    """Runs the command on the worker's file: exit code, JSON (or None), what was said."""

    def run(*arguments):
        capsys.readouterr()
        code = run_command(["cleanup", "-f", str(worker.file), "-o", "json", *arguments])
        said = capsys.readouterr()
        return code, json.loads(said.out) if said.out else None, said.err

    return run


def names_on(cluster):
    return set(cluster.admin().list_topics(timeout=10).topics)


def reserved(cluster, worker):
    """Topics and groups of the topology on a cluster."""
    prefix = f"__replicator.{worker.name}"
    topics = {name for name in names_on(cluster) if name.startswith(prefix)}
    groups = cluster.admin().list_consumer_groups().result().valid
    names = {each.group_id for each in groups}
    return topics | {n for n in names if n.startswith((prefix, f"replicator.{worker.name}"))}


def subjects(entries):
    return {(each["cluster"], each["kind"], each["subject"]) for each in entries}


def test_a_link_goes_and_leaves_what_others_use_then_the_last_one_leaves_nothing(
    worker, cleanup, east, west
):
    lab = LaneLab(east, west, name=worker.name)
    topics = {link: lab.topic(on_target=False) for link in ("orders", "bills")}
    worker.cluster(east)
    worker.cluster(west)
    for link, topic in topics.items():
        lab.numbered(topic, range(10))
        worker.link(link, "east", "west", [topic])
    worker.start()
    for link in topics:
        worker.until(
            lambda link=link: worker.metric("replicator_records_replicated_total", link=link) >= 10,
            f"{link} to be copied",
        )

    code, _, said = cleanup("--link", "bills", "--yes")
    assert code == 3, said
    assert "at work on link bills" in said
    worker.drain()

    code, answer, _ = cleanup("--link", "bills", "--dry-run")
    assert code == 0
    assert not answer["done"]
    prefix = f"__replicator.{worker.name}"
    before = reserved(west, worker)
    assert f"{prefix}.control" in before
    assert ("west", "checkpoints", f"{prefix}.east.checkpoints") in subjects(answer["remove"])
    kept = subjects(each for each in answer["stay"] if each["reason"])
    assert ("west", "topic", f"{prefix}.control") in kept
    assert ("west", "group", prefix + ".east") in kept or f"{prefix}.east" not in before
    code, _, said = cleanup("--link", "bills")
    assert code == 2, "nobody was asked"
    assert "--yes" in said

    code, answer, said = cleanup("--link", "bills", "--yes")
    assert code == 0, said
    assert answer["done"]
    shown = worker.command("topics")["topics"]
    assert {each["source"] for each in shown if each["state"] == "active"} <= {topics["orders"]}
    assert f"{prefix}.east.checkpoints" in reserved(west, worker)

    worker.links = [each for each in worker.links if each["name"] == "orders"]
    worker.write()
    code, answer, said = cleanup("--link", "orders", "--yes")
    assert code == 0, said
    for cluster in (east, west):
        wait_until(
            lambda cluster=cluster: not reserved(cluster, worker),
            timeout_seconds=20.0,
            describe=lambda cluster=cluster: f"nothing left: {reserved(cluster, worker)}",
        )
        assert set(topics.values()) <= set(names_on(cluster)), "copies stay"
    code, answer, _ = cleanup("--link", "orders", "--yes")
    assert (code, answer["remove"]) == (0, [])
