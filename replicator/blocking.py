"""Calls that block, made from an event loop."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def finished(call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Runs a blocking call in a thread.

    When cancelled it waits for the call's end first: a client must not be closed, nor a write be
    given up, under the thread that uses it. What the call then returns or raises is dropped.
    """
    work = asyncio.create_task(asyncio.to_thread(call, *arguments, **named))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        with contextlib.suppress(Exception):
            await work
        raise
