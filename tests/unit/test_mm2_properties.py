"""Properties files as Java reads them; what is expected here was printed by java.util.Properties."""

import pytest

from replicator.errors import InputError
from replicator.mm2.properties.java_properties import Entry, parse_properties


def pairs(text):
    return [(entry.key, entry.value) for entry in parse_properties(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", [("a", "b")]),
        ("a = b ", [("a", "b ")]),
        ("a:b", [("a", "b")]),
        ("a b", [("a", "b")]),
        ("a   =   b=c:d", [("a", "b=c:d")]),
        ("a : = b", [("a", "= b")]),
        ("\t\f a\tb", [("a", "b")]),
        ("a", [("a", "")]),
        ("a=", [("a", "")]),
        ("=b", [("", "b")]),
        ("east->west.enabled = true", [("east->west.enabled", "true")]),
        ("# a=b\n  ! c=d\n\n \t\ne=f", [("e", "f")]),
        ("a=b # no comment", [("a", "b # no comment")]),
        (r"a\=b\:c\ d = e", [("a=b:c d", "e")]),
        (r"a=\t\n\r\f\q\\", [("a", "\t\n\r\fq\\")]),
        (r"a=\u00e9\u20AC", [("a", "é€")]),
        (r"a=\uD83D\uDE00", [("a", "😀")]),
        (r"\u0061=b", [("a", "b")]),
        (r"topics=orders\\..*", [("topics", r"orders\..*")]),
        ("a=b\\\n   c\\\n\td", [("a", "bcd")]),
        ("a=b\\\n# no comment", [("a", "b# no comment")]),
        ("a=b\\\\\nc=d", [("a", "b\\"), ("c", "d")]),
        ("a=b\\\\\\\nc=d", [("a", "b\\c=d")]),
        ("a=b\\\n\nc=d", [("a", "b"), ("c", "d")]),
        ("a=b\\", [("a", "b")]),
        ("# comments do not go on \\\na=b", [("a", "b")]),
        ("a=b\r\nc=d\re=f", [("a", "b"), ("c", "d"), ("e", "f")]),
        ("a=1\na=2", [("a", "1"), ("a", "2")]),
        ("", []),
        ("\\", [("", "")]),
    ],
)
def test_text_is_read_as_java_reads_it(text, expected):
    assert pairs(text) == expected


def test_every_entry_knows_its_line():
    text = "# head\n\na=1\nb=2\\\n  3\n! more\nc=4\r\nd=5"
    assert parse_properties(text) == (
        Entry("a", "1", 3),
        Entry("b", "23", 4),
        Entry("c", "4", 7),
        Entry("d", "5", 8),
    )


@pytest.mark.parametrize("text", [r"a=\u12", "x=1\na=\\uzzzz", r"a=\u-123", r"\u=1"])
def test_a_broken_escape_is_refused_with_its_line(text):
    with pytest.raises(InputError, match=rf"line {text.count(chr(10)) + 1} "):
        parse_properties(text)
