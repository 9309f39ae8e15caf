"""The `replicator` command: its verbs, and what is the same for all of them.

Exit codes: 0 done, 1 failed, 2 the input is wrong, 3 refused by a safety check, 4 differences found,
130 interrupted. Errors are one paragraph on standard error; a traceback only with `--debug`.

Each verb group is a file with `register(app)`. They import nothing heavy before a command runs, so
that `--help` answers at once.
"""

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Protocol, runtime_checkable

import typer

from replicator.cli.output import say
from replicator.errors import InputError, ReplicatorError
from replicator.interruption import ctrl_c_as_itself
from replicator.redaction import redact_text, redact_tracebacks

VERBS = {
    "demo": "file",
    "validate": "file",
    "schema": "file",
    "plan": "file",
    "run": "operation",
    "status": "operation",
    "check": "file",
    "topics": "operation",
    "gaps": "operation",
    "groups": "operation",
    "offsets": "operation",
    "pause": "operation",
    "roles": "roles",
    "tail": "roles",
    "bulk_sync": "spark",
    "stream": "spark",
    "quarantine": "operation",
    "verify": "spark",
    "archive": "spark",
    "history": "roles",
    "cleanup": "operation",
    "drill": "roles",
    "audit": "spark",
    "import_mm2": "file",
}
"""Files with a `register` and the package each is in, in the order of `--help`."""

FAILED = 1
INTERRUPTED = 130

_DEBUG = "--debug"


@runtime_checkable
class CommandLineError(Protocol):
    """What the option parser raises about a command line.

    A protocol, because releases of typer differ in the class that they raise.
    """

    exit_code: int

    def format_message(self) -> str:
        """What is wrong, for a person."""
        ...


def build_app(asked: str = "") -> typer.Typer:
    """The command with all its verbs, or only with those of the file named ``asked``.

    Importing all of them takes a tenth of a second, which would delay a worker's start.
    """
    app = typer.Typer(
        name="replicator",
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_global_options)
    file = asked.replace("-", "_")
    for verb in (file,) if file in VERBS else VERBS:
        import_module(f"replicator.cli.{VERBS[verb]}.{verb}").register(app)
    return app


def main() -> None:
    """Runs the command line of this process and exits."""
    redact_tracebacks()
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit code."""
    given, debug = _without_debug(arguments)
    given = given or ["--help"]
    try:
        with ctrl_c_as_itself():
            outcome = build_app(given[0])(given, prog_name="replicator", standalone_mode=False)
        sys.stdout.flush()
        if outcome == INTERRUPTED:  # typer turns Ctrl-C into its code without a word
            say("Interrupted.")
        return outcome if isinstance(outcome, int) else 0
    except ReplicatorError as error:
        _report(error.paragraph(), debug=debug)
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        _report("Interrupted.", debug=debug)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the pipe is gone; nothing may be written to it again, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:  # noqa: BLE001 # the last line of defence: a sentence, not a traceback
        if isinstance(error, CommandLineError):
            _report(_usage(error), debug=debug)
            return InputError.exit_code
        what = redact_text(f"Internal error: {type(error).__name__}: {error}")
        _report(f"{what.rstrip('.: ')}. Run it again with {_DEBUG} for the details.", debug=debug)
        return FAILED


def _without_debug(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """`--debug` is accepted anywhere before `--`, because people add it at the end of the line."""
    given = list(arguments)
    end = given.index("--") if "--" in given else len(given)
    if _DEBUG not in given[:end]:
        return given, False
    return [word for at, word in enumerate(given) if word != _DEBUG or at >= end], True


def _report(paragraph: str, *, debug: bool) -> None:
    if debug:
        sys.stderr.write(redact_text(traceback.format_exc()))
    say(paragraph)


def _usage(error: CommandLineError) -> str:
    message = error.format_message().strip().replace("Value error, ", "")
    if not message.endswith((".", "?", "!")):
        message += "."
    command = getattr(getattr(error, "ctx", None), "command_path", "replicator")
    return f"{message} See '{command} --help'."


def _print_version(asked: bool) -> None:
    if asked:
        from replicator import __version__

        sys.stdout.write(f"replicator {__version__}\n")
        raise typer.Exit


def _global_options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
    _debug: Annotated[
        bool,
        typer.Option(_DEBUG, help="Show a traceback with errors; accepted anywhere on the line."),
    ] = False,
) -> None:
    """Replicate Kafka topics between clusters: exactly once, loop-free, with failover.

    One YAML file declares the clusters and the links between them; every command
    reads it.
    """
