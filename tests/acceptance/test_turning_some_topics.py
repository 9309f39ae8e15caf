"""Topics that are to turn by themselves are made a link of their own: the others stay where they are."""

import pytest
from role_changes import LINK, Operator

from replicator.testing import Recorder, Writer, check, scan, wait_until

FLOW = "east->west"
BACK = "west->east"


class Apart:
    """A topic with writers and a history of its own."""

    def __init__(self, name, *clusters):
        self.name = name
        self._clusters = clusters
        self._history = Recorder()
        self._history.expect([FLOW, BACK])

    def write(self, cluster):
        """Writes 200 records; returns when all of them are acknowledged."""
        Writer(
            cluster, [self.name], history=self._history, rate_per_second=300, max_records=200
        ).start().join()

    def arrived(self):
        """Waits until every record is on each side exactly once, and nothing else."""

        def clean():
            seen = Recorder()
            for cluster in self._clusters:
                scan(cluster, [self.name], history=seen, timeout_seconds=60.0)
            return check(self._history.events() + seen.events()).clean

        wait_until(clean, timeout_seconds=60.0, describe=f"every record of {self.name}")


@pytest.mark.slow
def test_topics_leave_a_running_link_and_turn_while_the_others_stay(east, west, scene):
    apart = Apart(f"u.{scene.name}", east, west)
    east.create_topic(apart.name, partitions=2)
    scene.clusters(east, west, topic_on=[east])
    both = {"include": [scene.topic, apart.name]}
    scene.link("active-passive", active="east", passive="west", flows=[FLOW], topics=both)
    worker = scene.worker()
    scene.writer(east, rate=200)
    apart.write(east)
    scene.copying(FLOW)

    both["include"].remove(apart.name)
    scene.link(
        "active-passive", active="east", passive="west", flows=[], topics={"include": [apart.name]}
    )
    scene.topology()  # the running worker follows its file

    def flows():
        return {each["link"]: each for each in worker.get("/api/v1/status")["flows"]}

    def moved():
        found = flows()
        return set(found) == {LINK, "link-1"} and [
            topic["source"] for topic in found["link-1"]["topics"]
        ] == [apart.name]

    wait_until(moved, timeout_seconds=60.0, describe=lambda: f"a link of its own: {flows()}")
    apart.write(east)
    report = Operator(scene).run_link("link-1", "switchover", to="west", manual_fence=True)
    assert report.outcome == "done", report
    apart.write(west)
    apart.arrived()
    scene.copying(FLOW)  # under load all the while
    links = {each["link"]: each["active"] for each in worker.get("/api/v1/status")["links"]}
    assert links == {LINK: "east", "link-1": "west"}
    assert Operator(scene).role().epoch == 0
    scene.settled()
