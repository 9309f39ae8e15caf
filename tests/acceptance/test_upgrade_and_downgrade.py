"""Workers of the release before this one and of this one share the work under load, both ways."""

import time

import orjson
import pytest
from acceptance_worker import GRACE_SECONDS
from named_workers import ready, sharing
from releases import ROOT, installed, older_sources, run_release
from role_changes import LINK
from whole_topic import engine_of_newest, read_topic

from replicator.control.store.read import read_control
from replicator.formats.checkpoint import decode_checkpoint
from replicator.identifiers import HOPS_HEADER, checkpoints_topic, control_topic
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.kafka.logs.log_writer import LogWriter
from replicator.testing import wait_until
from replicator.topology.file.load import require_plan

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

FLOW = "east->west"
BACK = "west->east"
NAMES = ("w-0", "w-1", "w-2")
FUTURE_KEY = orjson.dumps({"kind": "of-the-future", "link": LINK, "v": 1})
"""A kind that neither release knows. The older one refuses keys of another version, also of such kinds."""
FUTURE_VALUE = orjson.dumps({"v": 7, "says": "something nobody knows yet"})
REFUSALS = ("cannot be read", "this release reads", "StoredFormatError")


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """Folders of both programs."""
    folder = tmp_path_factory.mktemp("releases")
    older, newer = folder / "older", folder / "newer"
    older.mkdir()
    return {
        "older": installed(older_sources(older), older),
        "newer": installed(ROOT, newer),
    }


def replaced(scene, pods, name, release):
    """A pod ends within its grace period, and another of a release takes its place under load."""
    pods[name].terminate()
    assert pods[name].exit_code(timeout_seconds=GRACE_SECONDS) == 0
    pods[name] = scene.worker("--worker-id", name, release=release)
    ready(pods[name], True)
    scene.copying(FLOW)


def control(scene):
    """The control topic of the target, folded, and as it is stored."""
    plan = require_plan(scene.topology())
    west = plan.cluster("west")
    topic = control_topic(scene.name)
    stored = read_compacted(west, topic, client_id="test")[0]
    return read_control(scene.name, west, client_id="test"), stored


def write_future(scene):
    """A record of a kind that neither release knows, as a later release may leave it."""
    plan = require_plan(scene.topology())
    topic = control_topic(scene.name)
    with LogWriter(plan.cluster("west"), topic, client_id="test", timeout_seconds=20.0) as writer:
        writer.write([(FUTURE_KEY, FUTURE_VALUE)])


def both_see_all_workers(scene, releases):
    """Each release's ``status`` counts the workers of both, and finds nothing wrong."""
    for name, folder in releases.items():
        shown = {}

        def agreed(name=name, folder=folder, shown=shown):
            log = scene.directory / f"status-{name}-{time.monotonic_ns()}.log"
            code, said = run_release(folder, log, scene.topology(), "status")
            shown.update(code=code, flows=said["flows"])
            (flow,) = said["flows"]
            ids = {worker["id"] for worker in flow["workers"]}
            return code == 0 and ids == set(NAMES) and not flow["problems"]

        wait_until(
            agreed, timeout_seconds=90.0, interval_seconds=1.0,
            describe=lambda shown=shown, name=name: f"status of the {name} release: {shown}",
        )  # fmt: skip


def group_synced(scene, release, group):
    """Waits until a release says that the group stands on both sides at the same record."""
    shown = {}

    def there():
        log = scene.directory / f"groups-{time.monotonic_ns()}.log"
        _, said = run_release(release, log, scene.topology(), "groups", group)
        shown.update(said)
        return all(
            each["state"] == "synced" and all(one["recordsReread"] == 0 for one in each["partitions"])
            for each in said["groups"]
        )  # fmt: skip

    wait_until(
        there, timeout_seconds=90.0, interval_seconds=1.0,
        describe=lambda: f"the group to be synced: {shown}",
    )  # fmt: skip


def copies_without_header(scene, west):
    """How many copies of partition 0 do not say where they come from."""
    return sum(
        all(name != HOPS_HEADER for name, _ in message.headers() or ())
        for message in read_topic(west, scene.topic, [0])
    )


def nothing_refused(scene):
    """No worker met a stored record that it could not read."""
    for worker in scene.workers:
        text = worker.log.read_text(errors="replace")
        found = [line for line in text.splitlines() if any(sign in line for sign in REFUSALS)]
        assert not found, found[:3]


def test_workers_are_replaced_one_by_one_under_load_and_back_again(east, west, scene, releases):
    older, newer = releases["older"], releases["newer"]
    scene.active_passive(east, west)
    group = f"{scene.name}-billing"
    pods = {name: scene.worker("--worker-id", name, release=older) for name in NAMES}
    sharing(scene, west, *NAMES)
    scene.writer(east, rate=1_000)
    reader = scene.reader(east, group)
    scene.copying(FLOW)
    write_future(scene)
    for to in (newer, older):
        for name in reversed(NAMES):
            replaced(scene, pods, name, to)
            if name == NAMES[1]:  # the others are of the other release and of this one
                both_see_all_workers(scene, releases)
                pods[name].end()  # its lanes go to workers of both releases, from their checkpoints
                scene.copying(FLOW)
                pods[name] = scene.worker("--worker-id", name, release=to)
                ready(pods[name], True)
            if to == newer and name != NAMES[0]:
                # The older ones would take copies without a header for records of somebody else.
                assert copies_without_header(scene, west) == 0, name
        sharing(scene, west, *NAMES)
        if to == newer:
            wait_until(
                lambda: engine_of_newest(west, scene.topic) == "batches", timeout_seconds=60.0,
                interval_seconds=1.0, describe="whole batches once the last older worker has gone",
            )  # fmt: skip
            scene.copying(FLOW)
    reader.stop()
    for release in releases.values():
        group_synced(scene, release, group)
    moved = scene.reader(west, group)
    moved.wait_delivered(100, timeout_seconds=90.0)
    moved.stop()
    state, stored = control(scene)
    assert stored[FUTURE_KEY] == FUTURE_VALUE
    assert {worker.id for worker in state.workers("east")} == set(NAMES)
    scene.settled(timeout_seconds=240.0)
    nothing_refused(scene)


@pytest.mark.parametrize("operator", ["older", "newer"])
def test_a_role_change_by_one_release_is_followed_by_workers_of_both(
    east, west, scene, releases, operator
):
    scene.active_passive(east, west, fencing={"method": "manual"})
    names = NAMES[:2]
    for name, release in zip(names, releases.values(), strict=True):
        scene.worker("--worker-id", name, release=release)
    sharing(scene, west, *names)
    scene.writer(east, rate=500)
    scene.copying(FLOW)
    scene.stop_writing()
    for to, source, flow in (("west", west, BACK), ("east", east, FLOW)):
        code, report = run_release(
            releases[operator], scene.directory / f"to-{to}.log", scene.topology(),
            "switchover", "--link", LINK, "--to", to, "--yes",
        )  # fmt: skip
        assert (code, report["outcome"]) == (0, "done"), report
        assert report["loss"]["records"] == 0
        scene.expect(flow)
        scene.writer(source, rate=500).wait_acked(200)
        scene.copying(flow)
        scene.stop_writing()
    for name, folder in releases.items():
        log = scene.directory / f"history-{name}.log"
        code, history = run_release(folder, log, scene.topology(), "history")
        assert code == 0, history
    scene.settled()
    nothing_refused(scene)


@pytest.mark.parametrize("operator", ["older", "newer"])
def test_a_pause_by_one_release_holds_workers_of_both(east, west, scene, releases, operator):
    scene.active_passive(east, west)
    names = NAMES[:2]
    for name, release in zip(names, releases.values(), strict=True):
        scene.worker("--worker-id", name, release=release)
    sharing(scene, west, *names)
    scene.writer(east, rate=500)
    scene.copying(FLOW)
    pause_of(scene, releases[operator], "pause")
    wait_until(
        lambda: held_still(scene), timeout_seconds=60.0, describe="every partition to stand still"
    )
    other = releases["newer" if operator == "older" else "older"]
    pause_of(scene, other, "resume")
    scene.copying(FLOW)
    stored = read_compacted(
        require_plan(scene.topology()).cluster("west"), checkpoints_topic(scene.name, "east"),
        range(len(names) * 2), client_id="test",
    )  # fmt: skip
    found = [decode_checkpoint(key, value) for lane in stored.values()
             for key, value in lane.items()]  # fmt: skip
    assert {one.partition for one in found if one is not None} == {0, 1, 2, 3}
    scene.settled()
    nothing_refused(scene)


def pause_of(scene, release, verb):
    """Pauses or resumes the flow by a release's command."""
    log = scene.directory / f"{verb}.log"
    code, said = run_release(release, log, scene.topology(), verb, "--flow", FLOW)
    assert code == 0, said


def held_still(scene):
    """Whether no position moves while writers go on."""
    before = scene.positions(FLOW)
    scene.written(500)
    return scene.positions(FLOW) == before
