"""A cluster comes back from a failover with less than it had given: the runbook's steps, typed in.

The steps are those of docs/runbooks/ReplicatorReturnedShort.md.
"""

import json

import pytest
from journal_watch import Command
from role_changes import LINK, Operator

from replicator.testing import LocalCluster, wait_until

FLOW = "east->west"
NEXT = "link-1"
"""The link that takes the place of the first one."""


def typed(scene, *words, code=0):
    """What a command says as JSON; it must end with that code."""
    found, said = Command(scene, "ann", *words, "-o", "json").ended()
    assert found == code, said
    return json.loads(said[said.index("{\n") :])


def link_problems(scene):
    return {(one["code"], one["subject"]) for one in typed(scene, "status")["links"][0]["problems"]}


def built_anew(scene, west, built):
    """Steps 3 to 5: the new cluster takes the place of the old one, and becomes the active one."""
    # Step 3: it gets a new alias, and the link is replaced by one with a new name.
    scene.clusters(west, built)
    scene.drop_links()
    scene.link("active-passive", active="west", passive="east-b", flows=())
    scene.expect("west->east-b", relay=True)
    # Step 4: plan, and workers with that file.
    planned = typed(scene, "plan")
    assert planned, planned
    scene.worker()
    scene.copying("west->east-b")
    scene.settled()
    # Step 5: with lag 0 a planned switchover, while nobody writes.
    report = typed(scene, "switchover", "--link", NEXT, "--manual-fence", "--yes")
    assert (report["outcome"], report["loss"]["records"]) == ("done", 0)
    scene.expect("east-b->west")
    scene.writer(built, rate=300)
    scene.written(300)
    scene.copying("east-b->west")
    scene.settled()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_cluster_that_returned_shorter_is_rebuilt_and_gets_its_role_back(
    clusters, scene, tmp_path
):
    east, west = clusters("east", "west")
    scene.active_passive(east, west)
    worker = scene.worker()
    scene.writer(east, rate=500)
    scene.written(2_000)
    scene.copying(FLOW)
    scene.settled()
    east.kill()
    ann = Operator(scene)
    assert ann.run("failover", to="west", accept_loss=True).outcome == "done"
    scene.writer(west, rate=300)
    scene.written(500)

    east.restart()
    east.admin().delete_topics([scene.topic])[scene.topic].result(30)  # its disks were lost
    wait_until(
        lambda: scene.topic not in east.admin().list_topics(timeout=30).topics,
        timeout_seconds=60.0, describe="the topic to be gone",
    )  # fmt: skip
    east.create_topic(scene.topic, partitions=4)
    wait_until(
        lambda: ("RETURNED_SHORT", f"{scene.topic}/0") in link_problems(scene),
        timeout_seconds=90.0, interval_seconds=1.0, describe="the problem that the runbook is about",
    )  # fmt: skip
    code, said = Command(
        scene, "ann", "failback", "--link", LINK, "--dry-run", "--export", str(tmp_path)
    ).ended()
    assert code == 3, said
    assert "returning data" in said
    assert "its log ends at 0, and was copied up to" in said

    # Step 1: what the old link left goes, while the returned cluster still answers.
    worker.end()
    wait_until(
        lambda: Command(scene, "ann", "cleanup", "--link", LINK, "--yes").ended()[0] == 0,
        timeout_seconds=90.0, interval_seconds=2.0, describe="the worker to count as absent",
    )  # fmt: skip
    # Step 2: a new, empty cluster with an id of its own.
    east.stop()
    with LocalCluster("east-b") as built:
        built_anew(scene, west, built)

        # The link is whole: its active cluster is lost, comes back, and gets its role again.
        built.kill()
        done = Operator(scene).run_link(NEXT, "failover", to="west", accept_loss=True)
        assert done.outcome == "done"
        scene.writer(west, rate=300)
        scene.written(300)
        scene.stop_writing()
        built.restart()
        report = Operator(scene).run_link(
            NEXT, "failback", export=tmp_path, tail="inject", manual_fence=True
        )
        assert (report.outcome, report.loss.records) == ("done", 0), report
        scene.writer(built, rate=300)
        scene.copying("east-b->west")
        scene.settled()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_cluster_that_is_gone_for_good_is_replaced_by_another(clusters, scene):
    east, west = clusters("east", "west")
    scene.active_passive(east, west)
    worker = scene.worker()
    scene.writer(east, rate=500)
    scene.written(1_000)
    scene.copying(FLOW)
    scene.settled()

    def cleanup(*words):
        return Command(scene, "ann", "cleanup", "--link", LINK, *words).ended()

    worker.end()
    code, said = cleanup("--lost", "east", "--yes")
    assert code == 3, said
    assert "'east' is not lost: it answers" in said
    east.kill()
    code, said = cleanup("--lost", "north", "--yes")
    assert code == 2, said
    wait_until(
        lambda: "'east' is the active cluster" in cleanup("--lost", "east", "--yes")[1],
        timeout_seconds=90.0, interval_seconds=2.0, describe="to be told to fail over first",
    )  # fmt: skip
    assert Operator(scene).run("failover", to="west", accept_loss=True).outcome == "done"
    scene.writer(west, rate=300)
    scene.written(300)

    code, said = cleanup("--yes")
    assert code != 0, said  # without the word nobody is left out
    planned = typed(scene, "cleanup", "--link", LINK, "--lost", "east", "--dry-run")
    assert (planned["lost"], planned["done"]) == ("east", False)
    assert {each["cluster"] for each in planned["remove"]} == {"west"}
    assert (
        planned["remove"]
        == typed(scene, "cleanup", "--link", LINK, "--lost", "east", "--dry-run")["remove"]
    ), "a dry run changes nothing"
    code, said = cleanup("--lost", "east", "--yes")
    assert code == 0, said
    assert typed(scene, "cleanup", "--link", LINK, "--lost", "east", "--yes")["remove"] == []
    east.stop()
    with LocalCluster("east-b") as built:
        built_anew(scene, west, built)
