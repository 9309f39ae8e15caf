"""The commands that finish an open transition, as an operator types them. Pure."""

import shlex
from collections.abc import Sequence


def resume_command(kind: str, link: str, *options: str) -> str:
    """Resumes an open transition; ``options`` are repeated as they were given."""
    return _command(kind, link, "--resume", options)


def rollback_command(kind: str, link: str, *options: str) -> str:
    """Rolls an open transition back; empty for a failover, which can only be resumed."""
    return "" if kind == "failover" else _command(kind, link, "--rollback", options)


def still_open(kind: str, link: str, options: Sequence[str] = ()) -> str:
    """What to tell an operator whose run ended before its transition did."""
    lines = [
        f"The {kind} of link '{link}' is still open, and writers may still be fenced.",
        f"  Resume it:     {resume_command(kind, link, *options)}",
    ]
    back = rollback_command(kind, link, *options)
    if back:
        lines.append(f"  Roll it back:  {back}")
    return "\n".join(lines)


def _command(kind: str, link: str, doing: str, options: Sequence[str]) -> str:
    return shlex.join(["replicator", kind, "--link", link, *options, doing])
