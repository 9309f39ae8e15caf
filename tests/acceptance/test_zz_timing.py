import time
FLOW = "east->west"
def test_t(clusters, scene):
    t0=time.monotonic()
    def say(x):
        print(f"{time.monotonic()-t0:.1f} {x}")
    east, west = clusters("east", "west")
    say("booted")
    scene.active_passive(east, west)
    w = scene.worker()
    writer = scene.writer(east, rate=1_000)
    scene.copying(FLOW); say("copying")
    for name, broken in (("west",[west]), ("east",[east]), ("both",[east, west])):
        for cluster in broken:
            cluster.kill()
        say("killed "+name)
        for cluster in broken:
            cluster.restart()
        say("restarted "+name)
        writer.wait_acked(500, timeout_seconds=60.0)
        say("acked")
        scene.copying(FLOW); say("copying")
    scene.settled(); say("settled")
    print(w.log_tail(200))
    assert 0
