"""Programs and webhooks of the operator's own: run with a time limit, their output kept as evidence."""

import http.client
import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

KEPT_CHARACTERS = 4096


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of one; ``output`` is the beginning of what it said."""

    what: str
    ok: bool
    output: str

    def as_json(self) -> dict[str, object]:
        """As evidence."""
        return {"ran": self.what, "ok": self.ok, "output": self.output}


def run_command(
    command: tuple[str, ...], context: Mapping[str, str], *, timeout_seconds: float
) -> Ran:
    """Runs a program without a shell; the context is in its environment as ``REPLICATOR_...``."""
    what = command[0]
    environment = {
        **os.environ,
        **{f"REPLICATOR_{name.upper()}": value for name, value in context.items()},
    }
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_seconds,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"").decode(errors="replace")
        return Ran(
            what, ok=False, output=f"{said[:KEPT_CHARACTERS]}\nnot done in {timeout_seconds:g} s"
        )
    except OSError as error:
        return Ran(what, ok=False, output=f"cannot be run: {error.strerror or error}")
    said = done.stdout.decode(errors="replace")[:KEPT_CHARACTERS]
    if done.returncode:
        return Ran(what, ok=False, output=f"{said}\nexit code {done.returncode}".strip())
    return Ran(what, ok=True, output=said)


def call_webhook(url: str, context: Mapping[str, str], *, timeout_seconds: float) -> Ran:
    """POSTs the context as JSON; any answer of the 2xx kind is a yes. The URL's path is not shown."""
    host = urlsplit(url).netloc.rpartition("@")[2]
    asked = urllib.request.Request(  # noqa: S310  the file allows http and https only
        url,
        data=json.dumps(dict(context)).encode(),
        headers={"Content-Type": "application/json"},
        method="POST",
    )
    try:
        with urllib.request.urlopen(asked, timeout=timeout_seconds) as answer:  # noqa: S310
            said = answer.read(KEPT_CHARACTERS).decode(errors="replace")
    except urllib.error.HTTPError as refused:
        with refused:
            return Ran(host, ok=False, output=f"answered {refused.code}")
    except (OSError, ValueError, http.client.HTTPException) as error:
        return Ran(host, ok=False, output=f"no answer: {error}")
    return Ran(host, ok=True, output=said)
