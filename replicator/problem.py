"""A problem that an operator should know, and its form in JSON."""

from dataclasses import dataclass

from replicator.errors import ReplicatorError
from replicator.identifiers import JsonObject


@dataclass(frozen=True, slots=True)
class Problem:
    """Something an operator should know; ``code`` is one of the contract's problem codes."""

    code: str
    subject: str
    detail: str
    remedy: str


def problem_json(problem: Problem) -> JsonObject:
    """A problem under the field names of the contract."""
    return {
        "code": problem.code,
        "subject": problem.subject,
        "detail": problem.detail,
        "remedy": problem.remedy,
    }


def problem_of(error: ReplicatorError, *, subject: str) -> Problem:
    """An error of a cluster as a problem of status."""
    return Problem(
        error.code, error.subject or subject, error.message,
        error.remedy or "Other flows continue; this one is retried automatically.",
    )  # fmt: skip
