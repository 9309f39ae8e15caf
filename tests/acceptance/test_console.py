"""The console in a real browser: what a person sees, by mouse, keyboard, phone and in the dark."""

import copy
import itertools
import os
import re
from pathlib import Path

import pytest
from acceptance_browser import MISSING, Chromium, find_browser
from acceptance_pages import SHAPES, PageWorker, flow, mesh, pair, status, three_regions

from replicator.api.server.address import HttpAddress, bind
from replicator.api.server.start import http_in_thread
from replicator.errors import UnreachableError

LIVE = "document.querySelector('#connection')?.dataset.state === 'live'"
# Boxes of everything on the map that a person reads.
BOXES = """[...document.querySelectorAll('#map .cluster rect, #map .label')]
  .filter((node) => node.getAttribute('visibility') !== 'hidden')
  .map((node) => { const b = node.getBoundingClientRect();
    return [node.parentElement.querySelector('text')?.textContent ?? '', b.left, b.top, b.right, b.bottom]; })"""
# The page asks at once when somebody comes back to it.
ANEW = "document.dispatchEvent(new Event('visibilitychange'))"
IMAGES = Path(__file__).parents[2] / "docs" / "images"
EVIL = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    program = find_browser()
    if program is None:
        pytest.fail(MISSING)
    with Chromium(program, profile=tmp_path_factory.mktemp("browser") / "profile") as chromium:
        yield chromium


@pytest.fixture
def page(browser, url):  # ends before the server: one that still asks complains
    page = browser.page()
    page.look(width=1200, height=900)
    yield page
    complaints = page.complaints()
    page.close()
    assert complaints == []


@pytest.fixture
def worker():
    return PageWorker()


@pytest.fixture
def url(worker):
    with http_in_thread(worker, bound=bind(HttpAddress(port=0, asked=True)), token=None) as url:
        yield url


def overlapping(boxes):
    """Pairs of boxes that cover each other by more than a hair."""
    return [
        (one[0], other[0])
        for one, other in itertools.combinations(boxes, 2)
        if min(one[3], other[3]) - max(one[1], other[1]) > 2
        and min(one[4], other[4]) - max(one[2], other[2]) > 2
    ]


@pytest.mark.parametrize("width", [1200, 768, 360])
def test_maps_of_two_to_eight_clusters_are_readable_at_every_width(page, worker, url, width):
    page.look(width=width, height=900)
    page.open(url)
    page.until(LIVE)
    for name, shown in SHAPES.items():
        worker.shown = shown
        page.ask(ANEW)
        clusters = {end for each in shown["flows"] for end in (each["source"], each["target"])}
        page.until(f"document.querySelectorAll('#map .cluster').length === {len(clusters)}")
        ways = len({each["flow"] for each in shown["flows"]})
        page.until(f"document.querySelectorAll('#map .arrow').length === {ways}")
        assert overlapping(page.ask(BOXES)) == [], name
        assert page.ask("document.documentElement.scrollWidth") <= width, name


def test_everything_the_page_promises_is_on_it(page, worker, url):
    problem = {
        "code": "TARGET_FEWER_PARTITIONS", "subject": "orders", "detail": "2 of 4 have no place",
        "remedy": "Grow the topic on west",
    }  # fmt: skip
    worker.shown = pair(problems=[problem])
    page.open(url)
    page.until(LIVE)
    page.until("document.querySelectorAll('.history > li').length === 2")
    page.until("document.querySelectorAll('.groups > li').length === 1")
    words = page.text()
    for said in (
        "● active", "○ passive", "epoch 3", "850 rec/s", "12 behind", "118 ms", "replicating",
        "TARGET_FEWER_PARTITIONS", "Grow the topic on west", "billing", "re-read if moved",
        "nothing", "drill: failover", "12 records", "7.4 s", "switchover", "2.9 s", "worker-a",
    ):  # fmt: skip
        assert said in words, said
    assert {each.removeprefix(url).split("?")[0] for each in page.asked_for()} <= {
        "/", *(f"/console/{name}" for name in page.ask(
            "performance.getEntriesByType('resource').map((e) => e.name.split('/console/')[1])"
            ".filter(Boolean)")),
        "/api/v1/status", "/api/v1/groups", "/api/v1/history",
    }  # fmt: skip


def test_hostile_names_are_shown_as_they_are_and_never_run(page, worker, url):
    shown = pair(reason=EVIL, state=EVIL, workers=[{"id": EVIL, "lanes": [0]}])
    shown["topology"] = shown["links"][0]["by"] = EVIL
    shown["flows"][0]["topics"][0]["source"] = EVIL
    shown["flows"][0]["problems"] = [
        {"code": EVIL, "subject": EVIL, "detail": EVIL, "remedy": EVIL}
    ]
    worker.shown = shown
    worker.groups_shown["groups"][0]["group"] = worker.groups_shown["groups"][0]["reason"] = EVIL
    for entry in worker.history_shown["entries"]:
        entry["by"] = entry["reason"] = entry["id"] = EVIL
    page.open(url)
    page.until(LIVE)
    page.until("document.querySelectorAll('.history > li').length === 2")
    page.until("document.querySelectorAll('.groups > li').length === 1")
    page.ask("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.ask("document.querySelector('.flow .opener').click()")
    page.until("document.querySelector('.flow table') !== null")
    assert page.text().count(EVIL) > 8
    assert page.ask("typeof window.hacked") == "undefined"
    assert page.ask("document.querySelectorAll('main img, main script').length") == 0


def test_the_page_can_be_used_by_keyboard_alone(page, worker, url):
    page.open(url)
    page.until(LIVE)
    page.press("Tab")
    assert page.ask("document.activeElement.className") == "skip"
    for _ in range(30):
        page.press("Tab")
        if page.ask("document.activeElement.classList.contains('arrow')"):
            break
    assert "east → west" in page.ask("document.querySelector('#map-detail').textContent")
    page.press("Enter")
    assert page.ask("location.hash") == "#flow-orders-dr-east-west"
    for _ in range(30):
        page.press("Tab")
        if page.ask("document.activeElement.className") == "opener":
            break
    page.press("Enter")
    page.until("document.querySelectorAll('.flow tbody tr').length === 4")
    assert page.ask("document.activeElement.getAttribute('aria-expanded')") == "true"
    # What is open stays open, and where one is stays, while figures come in anew.
    worker.shown["flows"][0]["lagRecords"] = 77
    page.until("document.querySelector('.flow .figures').innerText.includes('77')")
    assert page.ask("document.activeElement.className") == "opener"
    assert page.ask("document.querySelectorAll('.flow tbody tr').length") == 4


def test_a_worker_that_is_gone_is_reported_and_asked_again(page, worker):
    first = bind(HttpAddress(port=0, asked=True))
    with http_in_thread(worker, bound=first, token=None) as url:
        page.open(url)
        page.until(LIVE)
    page.until("document.querySelector('#connection').dataset.state === 'lost'")
    page.until("document.querySelector('#connection').innerText.includes('does not answer')")
    assert page.ask("document.querySelector('#main').dataset.stale") == "true"
    assert "850" in page.text()  # what was known is still shown, and said to be old
    again = bind(HttpAddress(port=first.port, asked=True))
    with http_in_thread(worker, bound=again, token=None):
        page.until(LIVE)
        assert page.ask("document.querySelector('#main').dataset.stale") == "false"
    page.complaints = list  # refused connections are what this test is about


def test_a_part_that_cannot_be_read_is_reported_in_its_own_card(page, worker, url):
    worker.failure = UnreachableError("no broker answers", subject="cluster:west")
    page.open(url)
    page.until(LIVE)
    page.until("document.querySelector('#groups-note').innerText.includes('no broker answers')")
    page.until("!document.querySelector('#history-note').hidden")
    assert "east → west" in page.text()
    page.complaints = list  # the browser names answers of 503


def test_a_server_that_asks_for_a_token_gets_one(page, worker):
    bound = bind(HttpAddress(host="0.0.0.0", port=0, asked=True))  # noqa: S104
    with http_in_thread(worker, bound=bound, token="secret-word") as url:
        page.open(url)
        page.until("document.querySelector('#token-form')?.hidden === false")
        page.ask("document.querySelector('#token').value = 'wrong'")
        page.ask("document.querySelector('#token-form button').click()")
        page.until("document.querySelector('#connection').innerText.includes('refused')")
        page.ask("document.querySelector('#token').value = 'secret-word'")
        page.ask("document.querySelector('#token-form button').click()")
        page.until(LIVE)
        page.until("document.querySelectorAll('.history > li').length === 2")
        assert page.ask("document.querySelector('#token-form').hidden")
    page.complaints = list  # the browser names answers of 401 and 403


CONTRAST = """(() => {
  const channel = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const light = (c) => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number);
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
  const back = (node) => { for (; node; node = node.parentElement) {
    const c = getComputedStyle(node).backgroundColor; if (!/, 0\\)$|transparent/.test(c)) return c; } };
  return [...document.querySelectorAll('main *, header *')]
    .filter((n) => n.childNodes.length && [...n.childNodes].some((c) => c.nodeType === 3 && c.data.trim())
      && n.checkVisibility() && !n.closest('svg') && !n.closest('.visually-hidden'))
    .map((n) => { const [a, b] = [light(getComputedStyle(n).color), light(back(n))];
      return [n.className + ' ' + n.textContent.slice(0, 30), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]; })
    .filter(([, ratio]) => ratio < 4.5); })()"""


@pytest.mark.parametrize("dark", [False, True])
def test_words_stand_out_in_the_light_and_in_the_dark(page, worker, url, dark):
    worker.shown = pair(state="paused")
    page.look(width=1200, height=900, dark=dark)
    page.open(url)
    page.until(LIVE)
    page.until("document.querySelectorAll('.history > li').length === 2")
    page.until("document.querySelectorAll('.groups > li').length === 1")
    assert page.ask(CONTRAST) == []


def test_nothing_moves_for_those_who_asked_for_stillness(page, worker, url):
    moving = "getComputedStyle(document.querySelector('.arrow .moving')).animationName"
    page.open(url)
    page.until(LIVE)
    assert page.ask(moving) == "along"
    page.look(width=1200, height=900, still=True)
    assert page.ask(moving) == "none"


@pytest.mark.parametrize("state", ["replicating", "paused", "failed", "stopped", "seeding"])
def test_colour_is_never_the_only_sign(page, worker, url, state):
    worker.shown = pair(state=state)
    page.open(url)
    page.until(LIVE)
    pill = page.until("document.querySelector('.flow .pill').innerText")
    assert pill.split()[-1] == state
    assert len(pill.split()) == 2  # a mark, and the word
    if state != "replicating":
        assert state in page.ask("document.querySelector('#map .label').textContent")


def test_of_many_flows_those_that_need_a_look_are_shown_first(page, worker, url):
    shown = copy.deepcopy(mesh(5))
    shown["flows"][-1] |= {"state": "failed", "reason": "lima does not answer"}
    worker.shown = shown
    page.open(url)
    page.until(LIVE)
    visible = "[...document.querySelectorAll('.flow')].filter((n) => n.checkVisibility()).length"
    assert page.ask(visible) == 7
    assert "lima does not answer" in page.text()
    assert "lima → rome is failed" in page.text() or "is failed" in page.text()
    page.ask("document.querySelector('.more').click()")
    assert page.ask(visible) == 20


def test_an_empty_topology_and_one_that_was_never_applied_are_reported(page, worker, url):
    worker.shown = status([flow("east", "west", "l", state="stopped", reason="not applied yet",
                                lagRecords=None, lagSeconds=None, topics=[], workers=[],
                                canary=None)], [])  # fmt: skip
    worker.groups_shown = {"groups": [], "problems": []}
    worker.history_shown = {"entries": []}
    page.open(url)
    page.until(LIVE)
    page.until("document.querySelector('#history').innerText.includes('no drill was run yet')")
    for said in ("not applied yet", "lag unknown", "No worker runs", "No consumer group"):
        page.until(
            f"document.body.innerText.includes({said!r})"
        )  # each part is asked for by itself


def test_the_picture_in_the_documentation_shows_the_page_as_it_is(page, worker, url):
    """REPLICATOR_UPDATE_PICTURES=1 takes the picture anew, together with the words that are on it."""
    worker.shown = three_regions()
    page.look(width=1200, height=900, still=True)
    page.open(url)
    page.until(LIVE)
    page.until("document.querySelectorAll('.history > li').length === 2")
    page.until("document.querySelectorAll('.groups > li').length === 1")
    words = page.ask(
        "[...document.querySelectorAll('header, main')].map((n) => n.innerText).join('\\n')"
    )
    lines = (re.sub(r"\d+([.,]\d+)*", "0", line).strip() for line in words.splitlines())
    outline = "\n".join(filter(None, lines)) + "\n"
    if os.environ.get("REPLICATOR_UPDATE_PICTURES"):
        IMAGES.mkdir(exist_ok=True)
        page.shot(IMAGES / "console.png")
        (IMAGES / "console.txt").write_text(outline, encoding="utf-8")
    taken_with = (IMAGES / "console.txt").read_text(encoding="utf-8")
    assert outline == taken_with, (
        "the page changed: run this test with REPLICATOR_UPDATE_PICTURES=1"
    )
