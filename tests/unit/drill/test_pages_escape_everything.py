"""Whatever text stands in whatever field of a report, the page shows it as text."""

import copy
from html.parser import HTMLParser
from types import SimpleNamespace

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replicator.drill.report.page import draw_page
from replicator.html_template import render_html
from replicator.spark.verify.html import page

HOSTILE = st.one_of(
    st.sampled_from(
        ["<script>alert(1)</script>", '" onload="x', "' onload='x", "</title><b>", "&lt;i&gt;", "{{ 7 }}", "]]>"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
)  # fmt: skip
FIXED = {("kind",), ("mode",), ("verdict",)}
"""Fields that choose what the page says; the report's own format admits no other values."""


class Structure(HTMLParser):
    """Elements and the names of their attributes, in order."""

    def __init__(self, text):
        super().__init__()
        self.seen = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, tuple(name for name, _ in attrs)))

    def handle_endtag(self, tag):
        self.seen.append(f"/{tag}")

    def handle_decl(self, decl):
        self.seen.append(decl)

    def unknown_decl(self, data):
        self.seen.append(data)


def texts(value, path=()):
    """The path of every text in a JSON value."""
    if isinstance(value, str):
        yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        yield from texts(inner, (*path, key))


def changed(value, path, text):
    """A copy of a JSON value with one text exchanged."""
    made = copy.deepcopy(value)
    place = made
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = text
    return made


@pytest.fixture
def report(report_of):
    made = orjson.loads(orjson.dumps(report_of(trouble="it ended early", lost={3})))
    loss = {"records": 3, "seconds": 1.0}
    check = {"check": "role", "ok": True, "detail": "east is active"}
    change = {
        "kind": "failover", "from": "east", "to": "west", "outcome": "done", "epoch": 1,
        "fencing": "acl", "loss": loss, "checks": [check],
    }  # fmt: skip
    return {**made, "transition": change, "checksum": "c" * 64}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(data=st.data(), text=HOSTILE)
def test_no_text_of_a_drill_report_becomes_markup(report, data, text):
    path = data.draw(st.sampled_from([each for each in texts(report) if each not in FIXED]))
    plain = Structure(draw_page(changed(report, path, "plain"))).seen
    assert Structure(draw_page(changed(report, path, text))).seen == plain


COUNTS = {"compared": 9, "lost": 1, "duplicated": 0, "reordered": 0, "changed": 0, "foreign": 0}
RESULT = {
    "flow": "east->west", "cut": "2026-01-01T00:00:00Z", "seconds": 1.5,
    "total": {**COUNTS, "others": 0, "excused": {"loop": 1}},
    "topics": [{
        **COUNTS, "topic": "orders", "target": "orders", "partition": 0, "matched": "origin",
        "excused": {"loop": 1}, "sourceFrom": 0, "sourceTo": 10, "sourceHash": "0" * 16, "targetHash": "1" * 16,
    }],
    "hours": [{**COUNTS, "topic": "orders", "hour": "2026-01-01T00:00:00Z"}],
}  # fmt: skip
FREE = [
    ("flow",),
    ("cut",),
    ("topics", 0, "target"),
    ("topics", 0, "targetHash"),
    ("hours", 0, "hour"),
]


@given(path=st.sampled_from(FREE), text=HOSTILE, data=HOSTILE)
def test_no_text_and_no_record_of_a_comparison_becomes_markup(path, text, data):
    def drawn(name, value):
        content = SimpleNamespace(offset=3, key=value, value=value)
        record = SimpleNamespace(topic=name, partition=0, kinds=name, source=content, copy=content)
        return Structure(page(changed(RESULT, path, name), [record])).seen

    assert drawn(text, data.encode()) == drawn("plain", b"plain")


def test_a_value_that_a_template_misses_is_an_error():
    with pytest.raises(Exception, match="'report' is undefined"):
        render_html("replicator.drill.report", "page.html.j2")
