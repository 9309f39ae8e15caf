import json
import re
from html.parser import HTMLParser

import orjson
import pytest

from replicator.drill.report.checksum_chain import append, find, read_all, verify
from replicator.drill.report.page import draw_page
from replicator.errors import InputError, StoredFormatError


@pytest.fixture
def chain(tmp_path, report_of):
    """A directory with three reports."""
    for name in ("first", "second", "third"):

        def make(previous, number, name=name):
            return report_of(previous=previous, number=number, name=name)

        append(tmp_path, make, draw=draw_page)
    return tmp_path


def details(directory):
    return [breach.detail for breach in verify(directory, draw=draw_page)]


def test_each_report_carries_the_checksum_of_the_one_before(chain):
    first, second, third = (stored.report for stored in read_all(chain))
    assert (first["previous"], first["number"]) == ("", 1)
    assert second["previous"] == first["checksum"]
    assert third["previous"] == second["checksum"]
    assert details(chain) == []


def test_a_report_that_was_made_better_is_found(chain):
    path = read_all(chain)[1].path
    report = orjson.loads(path.read_bytes())
    report["rtoSeconds"] = 0.1
    path.write_bytes(orjson.dumps(report))
    assert any("does not match its checksum" in detail for detail in details(chain))


def test_a_report_that_was_made_better_with_its_checksum_breaks_the_next_one(chain):
    from replicator.drill.report.checksum_chain import checksum

    stored = read_all(chain)[1]
    report = dict(stored.report, verdict="pass", rtoSeconds=0.1)
    report["checksum"] = checksum(report)
    stored.path.write_bytes(orjson.dumps(report))
    stored.page.write_text(draw_page(report))
    assert details(chain) == ["the report before it was altered or removed"]


def test_a_report_that_was_taken_away_leaves_a_gap(chain):
    read_all(chain)[1].path.unlink()
    assert "it is number 3, number 2 is missing" in details(chain)


def test_a_page_that_shows_something_else_is_found(chain):
    page = read_all(chain)[2].page
    page.write_text(page.read_text().replace("3.0 s", "0.1 s"))
    assert details(chain) == ["the page does not show what the report says"]
    page.unlink()
    assert details(chain) == ["the page is missing"]


def test_a_report_is_found_by_its_id_the_beginning_of_it_or_as_the_last(chain):
    wanted = read_all(chain)[1].report["id"]
    assert find(chain, wanted).report["id"] == wanted
    assert find(chain, wanted[:23]).report["id"] == wanted
    assert find(chain, "last").report["number"] == 3
    with pytest.raises(InputError, match="3 reports begin with '2026'"):
        find(chain, "2026")
    with pytest.raises(InputError, match="no report 'none'"):
        find(chain, "none")


def test_a_foreign_file_is_named(chain):
    (chain / "notes.json").write_text("[]")
    with pytest.raises(StoredFormatError) as caught:
        read_all(chain)
    assert "notes.json" in caught.value.subject


def test_an_empty_or_missing_directory_is_an_empty_chain(tmp_path):
    assert read_all(tmp_path / "none") == []
    assert details(tmp_path / "none") == []


class Tags(HTMLParser):
    """Whether every tag is closed, and what there is."""

    def __init__(self, page):
        super().__init__()
        self.seen, self.text, self._open = [], [], []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in {"meta", "br", "link", "img"}:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_needs_nothing_but_itself_and_is_well_formed(report_of):
    page = draw_page(finished(report_of()))
    tags = Tags(page)
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in tags.seen}
    assert not re.search(r"https?://|url\(|@import", page)
    words = " ".join(" ".join(tags.text).split())
    for shown in ("✓ passed", "3.0 s", "network cut", "p" * 64, "c" * 64, "Records skipped"):
        assert shown in words


def test_hostile_names_are_shown_and_never_run(report_of):
    evil = '<script>alert(1)</script>"onload="x'
    report = finished(report_of(trouble=evil, link=evil))
    report["marks"][0]["label"] = report["steps"][1]["result"] = evil
    report["steps"][1]["step"] = report["groups"][0]["group"] = report["by"] = evil
    tags = Tags(draw_page(report))
    assert "script" not in {tag for tag, _ in tags.seen}
    assert not any("onload" in attributes for _, attributes in tags.seen)
    assert "".join(tags.text).count("<script>alert(1)</script>") >= 5


def test_a_failed_drill_says_so_in_words(report_of):
    page = draw_page(finished(report_of(silence=(1010.0, float("inf")))))
    assert "✗ failed" in page
    assert "never ended" in page


def test_the_report_survives_json_unchanged(report_of):
    report = report_of()
    assert orjson.loads(orjson.dumps(report)) == json.loads(json.dumps(report))


def finished(report):
    return {**orjson.loads(orjson.dumps(report)), "checksum": "c" * 64}


def test_an_aborted_drill_is_reported_as_aborted_and_has_failed(report_of):
    report = report_of(trouble="aborted by hand.", aborted="interrupt")
    assert (report["verdict"], report["aborted"]) == ("fail", "interrupt")
    assert report["checks"][0] == {
        "check": "played to its end", "measured": None, "limit": None, "ok": False,
        "detail": "aborted by hand.",
    }  # fmt: skip
    page = draw_page({**report, "checksum": "0" * 64})
    assert "✗ aborted" in page
    assert "failed</p>" not in page
    assert report_of()["aborted"] is None
