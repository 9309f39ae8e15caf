"""Printing results: text for people, json and yaml for programs.

A result goes to standard output alone; everything else goes to standard error. Colour is used on
terminals only, and never when NO_COLOR is set. Secrets that this process has read are shown nowhere.
"""

import json
import sys
from collections.abc import Callable, Mapping
from io import StringIO
from typing import Any, TextIO, cast

import typer
from rich.console import Console, RenderableType

from replicator.cli.options import Output
from replicator.errors import InputError, ReplicatorError
from replicator.redaction import redact_answer, redact_known

Result = Mapping[str, object]


def out() -> Console:
    """Standard output; 80 columns when it is no terminal and COLUMNS does not say otherwise."""
    return Console(file=_redacting(sys.stdout), highlight=False)


def err() -> Console:
    """Standard error."""
    return Console(file=_redacting(sys.stderr), highlight=False)


class _Redacting:
    """A stream whose texts lose secrets; in all else the stream itself."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        return self._stream.write(redact_known(text))


def _redacting(stream: TextIO) -> TextIO:
    return cast("TextIO", _Redacting(stream))


def render(result: Result, output: Output, *, text: RenderableType | None = None) -> None:
    """Prints a result.

    Args:
        result: plain data, as the interface contract spells it.
        output: the format that was asked for.
        text: what people get to see; None prints the result as YAML, which reads well enough.
    """
    if output is not Output.TEXT:
        result = redact_answer(result)
    if output is Output.JSON:
        sys.stdout.write(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    elif output is Output.YAML or text is None:
        sys.stdout.write(to_yaml(result))
    else:
        # Sentences are left to the terminal to fold, so that paths in them can be copied whole.
        out().print(text, markup=False, soft_wrap=isinstance(text, str))


def show_listing(
    result: Result,
    name: str,
    output: Output,
    *,
    text: Callable[[list[dict[str, Any]]], RenderableType],
) -> None:
    """Prints what was found under ``name``, and the problems of clusters that did not answer.

    Raises:
        typer.Exit: with code 1, where there are problems.
    """
    found, problems = result[name], result["problems"]
    render(result, output, text=text(found if isinstance(found, list) else []))
    for problem in problems if isinstance(problems, list) else []:
        say(f"{problem['code']} {problem['subject']}: {problem['detail']}", style="red")
    if problems:
        raise typer.Exit(1)


def to_yaml(result: Result) -> str:
    """Plain data as YAML, in the order it has."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt", pure=True)  # keeps the order of keys
    yaml.allow_unicode = True
    yaml.width = 4096
    buffer = StringIO()
    # Through JSON: only plain types remain, and no YAML tags can appear.
    yaml.dump(json.loads(json.dumps(result)), buffer)
    return buffer.getvalue()


def say(line: str, *, style: str | None = None) -> None:
    """One line on standard error, never folded, so that places can be copied and clicked."""
    err().print(line, markup=False, soft_wrap=True, style=style)


def say_trouble(error: ReplicatorError) -> None:
    """A failure after which the next round tries again."""
    say(f"{error.paragraph()} The next round tries again.", style="yellow")


def confirm(question: str, *, yes: bool) -> bool:
    """Asks before something is changed.

    Raises:
        InputError: when there is nobody to ask and `--yes` was not given.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        raise InputError(
            f"{question} There is no terminal to ask on", remedy="Add --yes to go ahead."
        )
    err().print(f"{question} [y/N] ", markup=False, end="")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
