"""A task that another controller runs as well says so when that goes on."""

import asyncio
import contextlib

from replicator.clock import SystemClock
from replicator.control.tasks.task import MOST_FENCED, TaskRunner
from replicator.errors import FencedError


class Fenced:
    """A task that is told so many times that it has another owner, and then that it has not."""

    name, interval_seconds = "groups", 0.0

    def __init__(self, times: int) -> None:
        self.left = times
        self.seen = []
        self.over = asyncio.Event()

    async def run(self):
        self.seen.append([each.code for each in self.runner.problems])
        if not self.left:
            if len(self.seen) > 1:
                self.over.set()
            return ()
        self.left -= 1
        raise FencedError("another owner took over")

    def close(self) -> None:
        pass


async def problems_seen(times: int):
    """The problems that stood at the beginning of each run, and those at the end."""
    task = Fenced(times)
    task.runner = TaskRunner(task, flow="east->west", clock=SystemClock())
    running = asyncio.create_task(task.runner.run())
    await asyncio.wait_for(task.over.wait(), 20)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    return task.seen, task.runner.problems


def test_a_task_that_is_fenced_again_and_again_is_a_problem_until_it_is_not():
    seen, left = asyncio.run(problems_seen(MOST_FENCED))
    assert seen[: MOST_FENCED + 1] == [[]] * MOST_FENCED + [["FENCED"]]
    assert left == ()


def test_one_that_is_about_to_be_stopped_says_nothing():
    seen, _ = asyncio.run(problems_seen(MOST_FENCED - 1))
    assert not any(seen)
