"""The last line of a Spark command: said at the end and at an interruption, never before an error."""

import contextlib

import pytest

from replicator.cli.main import run_command
from replicator.cli.options import Output
from replicator.cli.spark.closing import Closing, unless_failed


def concluded_by(error):
    said = []
    with contextlib.suppress(BaseException), contextlib.ExitStack() as ending:
        ending.push(unless_failed(lambda: said.append("end")))
        if error is not None:
            raise error
    return said


@pytest.mark.parametrize("error", [None, KeyboardInterrupt(), SystemExit(143)])
def test_an_end_and_an_interruption_are_concluded(error):
    assert concluded_by(error) == ["end"]


def test_an_error_is_its_own_last_line():
    assert concluded_by(ValueError("wrong")) == []


def test_the_line_follows_the_result_where_people_read_it(capsys):
    Closing("archive east").say(1_200, "complete", size=3_400_000, report="Archive: /a")
    shown = capsys.readouterr()
    assert shown.out == "archive east: 1,200 records, 3.4 MB in 0 s: complete. Archive: /a.\n"
    Closing("archive east", Output.JSON).say(0, "complete")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "archive east: 0 records in 0 s: complete.\n")


def test_a_span_that_is_none_is_named_before_any_cluster_is_asked(capsys):
    audit = ["audit", "--flow", "east->west", "--again"]
    assert run_command([*audit, "soon"]) == 2
    assert "'soon' is not a span of time" in capsys.readouterr().err
    assert run_command([*audit, "24h", "--continuous"]) == 2
    assert "Leave --continuous out" in capsys.readouterr().err
