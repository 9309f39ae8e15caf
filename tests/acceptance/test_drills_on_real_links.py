"""Drills on a link that is not theirs: the operator's programs, abort conditions, what stays on record."""

import json
import os
import textwrap
from pathlib import Path

import pytest
from acceptance_browser import MISSING, Chromium, find_browser

from replicator.cli.main import run_command

FLOW = "east->west"
PICTURES = os.environ.get("REPLICATOR_TEST_PICTURES")
LINK = "link-0"


def busy_link(scene, east, west):
    """A busy link whose roles can be changed, and which selects the drills' own topics."""
    scene.clusters(east, west, topic_on=[east])
    topics = {"include": [scene.topic, "replicator-drill.*"]}
    scene.link(
        "active-passive", active="east", passive="west", flows=[FLOW], topics=topics,
        fencing={"method": "manual"},
    )  # fmt: skip
    scene.worker("--worker-id", "one")
    scene.writer(east, rate=100)
    scene.copying(FLOW)
    return scene


@pytest.fixture
def sides(request, east, west):
    """The clusters of the link: the shared ones, or a test's own that may be broken."""
    if getattr(request, "param", "shared") == "own":
        return request.getfixturevalue("clusters")("east", "west")
    return east, west


@pytest.fixture
def link(sides, scene):
    return busy_link(scene, *sides)


@pytest.fixture
def drilled(tmp_path, capsys, link):
    """Runs a drill by the command line; gives exit code, report and what was said."""

    def run(spec: str, *options: str):
        file = tmp_path / "drill.yaml"
        text = textwrap.indent(textwrap.dedent(spec), "  ")
        head = "apiVersion: replicator/v1\nkind: Drill\nmetadata: {name: real}\nspec:\n"
        load = "  load: {recordsPerSecond: 100, before: 1s, after: 1s}\n"
        file.write_text(f"{head}  link: {LINK}\n{'' if 'load:' in text else load}{text}")
        capsys.readouterr()
        code = run_command(
            ["drill", "run", str(file), "-f", str(link.topology()), "-o", "json",
             "--reports", str(tmp_path / "reports"), *options]
        )  # fmt: skip
        captured = capsys.readouterr()
        return code, json.loads(captured.out) if captured.out else None, captured.err

    return run


def on_record(scene, capsys):
    capsys.readouterr()
    assert run_command(["history", "-f", str(scene.topology()), "-o", "json"]) == 0
    return json.loads(capsys.readouterr().out)["entries"]


def topics_of(cluster):
    return {name for name in cluster.admin().list_topics(timeout=20).topics if "drill" in name}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_worker_is_killed_on_the_real_link_and_the_digest_stays_on_record(
    east, west, link, drilled, capsys
):
    link.worker("--worker-id", "two")
    link.copying(FLOW)
    victim = link.workers[0].pid
    before = topics_of(east) | topics_of(west)
    code, report, said = drilled(
        f"""\
        kind: worker-crash
        fault: {{begin: [kill, "-9", "--", "-{victim}"]}}
        limits: {{maxRtoSeconds: 60, maxLostRecords: 0, maxReread: 0}}
        """,
        "--yes",
    )
    assert (code, report["mode"], report["verdict"]) == (0, "real", "pass"), said
    (entry,) = on_record(link, capsys)
    assert (entry["kind"], entry["drill"], entry["verdict"]) == ("drill", "worker-crash", "pass")
    assert entry["checksum"] == report["checksum"]
    assert topics_of(east) | topics_of(west) == before  # its own topic is gone again
    assert run_command(["history", "-f", str(link.topology())]) == 0
    shown = capsys.readouterr().out
    assert "worker-crash" in shown
    assert max(map(len, shown.splitlines())) <= 80
    link.settled()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_switchover_is_drilled_on_the_real_link(link, drilled, capsys):
    link.stop_writing()  # applications of a link whose fence is a word are stopped by somebody
    code, report, said = drilled(
        """\
        kind: switchover
        limits: {maxRtoSeconds: 60, maxLostRecords: 0, maxReread: 0}
        """,
        "--yes",
    )
    assert (code, report["verdict"]) == (0, "pass"), said
    kinds = sorted(entry["kind"] for entry in on_record(link, capsys))
    assert kinds == ["drill", "switchover"]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("sides", ["own"], indirect=True)
def test_a_failover_is_drilled_on_the_real_link(sides, link, drilled, capsys):
    east, west = sides
    link.stop_writing()  # its applications have nothing to do with a rehearsal
    brokers = [f'"{broker.pid}"' for broker in east.brokers]
    code, report, said = drilled(
        f"""\
        kind: failover
        fault:
          begin: [kill, "-STOP", {", ".join(brokers)}]
          end: [kill, "-CONT", {", ".join(brokers)}]
        limits: {{maxRtoSeconds: 60, maxLostRecords: 1000, maxReread: 5000}}
        """,
        "--yes",
    )
    assert (code, report["mode"], report["verdict"]) == (0, "real", "pass"), said
    assert report["transition"]["outcome"] == "done"
    assert 1 < report["rtoSeconds"] < 60
    stated = next(each for each in report["checks"] if each["check"] == "statedLoss")
    assert stated["limit"] >= stated["measured"] == report["lostRecords"]
    kinds = sorted(entry["kind"] for entry in on_record(link, capsys))
    assert kinds == ["drill", "failover"]
    (role,) = link.asked().get("/api/v1/status")["links"]
    assert (role["active"], role["epoch"], role["state"]) == ("west", 1, "promoted")
    # As the drill leaves it: the way back is the operator's.
    code = run_command(
        ["failback", "--link", LINK, "--no-switch", "--yes", "--export", str(link.directory),
         "-f", str(link.topology())]
    )  # fmt: skip
    assert code == 0, str(capsys.readouterr())
    link.expect("west->east")
    link.writer(west, rate=200)
    link.copying("west->east")
    link.settled()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_drill_whose_condition_is_met_is_aborted_and_its_fault_ended(link, drilled):
    worker = link.workers[0].pid
    code, report, said = drilled(
        f"""\
        kind: network-cut
        fault:
          duration: 10m
          begin: [kill, "-STOP", "--", "-{worker}"]
          end: [kill, "-CONT", "--", "-{worker}"]
        limits: {{maxLostRecords: 0}}
        abort: {{maxLagSeconds: 2}}
        """,
        "--yes",
    )
    assert (code, report["verdict"]) == (1, "fail"), said
    played = next(each for each in report["checks"] if each["check"] == "played to its end")
    assert "maxLagSeconds is 2" in played["detail"]
    assert any(each["step"] == "fault ends" for each in report["steps"])
    link.copying(FLOW)  # it runs again
    link.settled()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_topic_of_the_link_can_be_used_beside_its_own_writers(link, drilled):
    code, report, said = drilled(
        f"""\
        kind: network-cut
        load: {{recordsPerSecond: 100, before: 1s, after: 1s, topic: {link.topic}}}
        fault: {{duration: 1s, begin: ["true"], end: ["true"]}}
        limits: {{maxLostRecords: 0, maxReread: 0}}
        """,
        "--yes",
    )
    assert (code, report["verdict"]) == (0, "pass"), said
    assert report["history"]["counts"]["acknowledged"] > 100
    link.copying(FLOW)  # its own writers and the flow went on


def test_the_console_of_a_real_worker_shows_its_link_group_canary_and_history(
    east, link, drilled, tmp_path
):
    # What cannot be drilled is refused before anything is touched, also with consent.
    code, _, said = drilled("kind: failover\nlimits: {maxReread: 0}\n", "--yes")
    assert code == 3
    assert "fault.begin" in said
    code, _, said = drilled("kind: switchover\nlimits: {maxReread: 0}\n")
    assert code == 2
    assert "Add --yes to go ahead" in said

    reader = link.reader(east, f"{link.name}-billing")
    reader.wait_delivered(50)
    program = find_browser()
    if program is None:
        pytest.fail(MISSING)
    with Chromium(program, profile=tmp_path / "profile") as browser:
        page = browser.page()
        page.look(width=1200, height=900)
        page.open(link.workers[0].url())
        page.until("document.querySelectorAll('#map .cluster').length === 2")
        words = page.until(
            "['active', 'passive', 'rec/s', 'billing', 'one', 'no drill was run yet']"
            ".every((word) => document.body.innerText.includes(word)) && document.body.innerText",
            seconds=90,
        )
        assert "replicating" in words
        # The canary's figure is a time once one has come through the lanes.
        page.until(
            "/\\d+ m?s/.test(document.querySelectorAll('.figures dd')[4].innerText)", seconds=60
        )
        page.ask("document.querySelector('.flow .opener').click()")
        page.until("document.querySelectorAll('.flow tbody tr').length === 4")
        assert page.complaints() == []
        if PICTURES:  # for people who want to see what the page looks like
            page.shot(Path(PICTURES) / "console-wide.png")
            page.look(width=360, height=800, dark=True)
            page.shot(Path(PICTURES) / "console-phone-dark.png")
        link.workers[0].kill()
        page.until("document.querySelector('#connection').dataset.state === 'lost'", seconds=60)
