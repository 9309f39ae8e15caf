"""The operator's own programs and webhooks: called with a time limit, their output kept as evidence."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from replicator.programs import run_program
from replicator.redaction import redact_text

KEPT_CHARACTERS = 4096
MOST_READ_BYTES = 4 * KEPT_CHARACTERS


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """The result of one call; ``output`` is the beginning of the program's output or of the answer."""

    name: str
    ok: bool
    output: str

    def as_json(self) -> dict[str, object]:
        """As evidence."""
        return {"ran": self.name, "ok": self.ok, "output": self.output}


def run_command(
    command: tuple[str, ...], context: Mapping[str, str], *, timeout_seconds: float
) -> ProgramCall:
    """Runs a program without a shell; the context is in its environment as ``REPLICATOR_...``."""
    environment = {f"REPLICATOR_{name.upper()}": value for name, value in context.items()}
    done = run_program(command, timeout_seconds=timeout_seconds, environment=environment)
    output = done.output[:KEPT_CHARACTERS]
    if done.problem:
        output = f"{output}\n{done.problem}".strip()
    return ProgramCall(command[0], ok=not done.problem, output=output)


def call_webhook(url: str, context: Mapping[str, str], *, timeout_seconds: float) -> ProgramCall:
    """POSTs the context as JSON; any 2xx answer counts as success. The URL's path is not shown."""
    host = urlsplit(url).netloc.rpartition("@")[2]
    request = urllib.request.Request(  # noqa: S310  the file allows http and https only
        url,
        data=json.dumps(dict(context)).encode(),
        headers={"Content-Type": "application/json"},
        method="POST",
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout_seconds) as answer:  # noqa: S310
            # What is cut off may be the half of a secret: those go first.
            read = answer.read(MOST_READ_BYTES).decode(errors="replace")
            output = redact_text(read)[:KEPT_CHARACTERS]
    except urllib.error.HTTPError as refused:
        with refused:
            return ProgramCall(host, ok=False, output=f"answered {refused.code}")
    except (OSError, ValueError, http.client.HTTPException) as error:
        return ProgramCall(host, ok=False, output=f"no answer: {error}")
    return ProgramCall(host, ok=True, output=output)
