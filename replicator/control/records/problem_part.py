"""A problem as control records carry it."""

from replicator.control.records.base import Part
from replicator.problem import Problem


class ProblemPart(Part):
    """A problem as it is stored and shown."""

    code: str
    subject: str
    detail: str
    remedy: str


def problem_part(problem: Problem) -> ProblemPart:
    """A problem as control records carry it."""
    return ProblemPart(
        code=problem.code, subject=problem.subject, detail=problem.detail, remedy=problem.remedy
    )
