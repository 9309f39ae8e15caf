"""Numbered schedules of a simulation, tried one after the other."""

from collections.abc import Callable, Iterable


def first_broken(
    run_schedule: Callable[[int], list[str]], seeds: Iterable[int]
) -> tuple[int, list[str]] | None:
    """The first seed whose schedule breaks something, and what; None where all hold."""
    for seed in seeds:
        found = run_schedule(seed)
        if found:
            return seed, found
    return None
