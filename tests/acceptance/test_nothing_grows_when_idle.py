"""When writers stop, replication comes to rest: nothing circulates and nothing is written again."""

import time

WATCHED_SECONDS = 10.0


def test_no_topic_grows_once_everything_has_arrived(east, west, central, scene):
    three = (east, west, central)
    scene.mesh(*three)
    scene.worker()
    for cluster in three:
        scene.writer(cluster, rate=100)
    scene.written(600)
    scene.settled()

    def ends():
        return {cluster.name: scene.ends(cluster) for cluster in three}

    before = ends()
    watch_until = time.monotonic() + WATCHED_SECONDS
    while time.monotonic() < watch_until:
        assert ends() == before
        time.sleep(0.5)  # a sample now and then: that nothing happens has no event to wait for
