"""Why a topic could not be read to its end in time: everything that is known, not only the first of it. Pure.

A transaction that hides the end, a partition without a leader and a broker that does not answer look the same
to who waits, and one of them says nothing of the others.
"""

from dataclasses import dataclass

from replicator.errors import TRIED_AGAIN, ReplicatorError, UnreachableError


@dataclass(frozen=True, slots=True)
class UnreadPart:
    """A partition that is not read to its end yet.

    Attributes:
        partition: its number.
        position: the next offset.
        end: the high watermark that its leader told; negative while it told none.
        leader: the id of the broker that leads it, -1 where there is none, None where nobody said.
        held_at: where an open transaction begins that hides the rest; None where nothing is hidden.
        held_by: whose transaction that is, as far as it is known.
        reaches: where it ends by who wrote to it, if its leader shows less; negative otherwise.
    """

    partition: int
    position: int
    end: int = -1
    leader: int | None = None
    held_at: int | None = None
    held_by: str = ""
    reaches: int = -1


_HELD_REMEDY = (
    "It ends when its producer goes on, or with its timeout. One that outlives that is ended by "
    "'kafka-transactions.sh abort'; 'find-hanging' names it."
)


def unread_error(
    topic: str,
    unread: list[UnreadPart],
    *,
    seconds: float,
    subject: str,
    beside: ReplicatorError | None = None,
) -> ReplicatorError:
    """The error for a reader of ``topic``.

    Args:
        topic: what is read.
        unread: the partitions that are not at their end, in the order in which they are named.
        seconds: how long was tried.
        subject: the cluster.
        beside: what the client said of its connections meanwhile; it may be about a broker that leads none of
            the partitions, so it is never the whole answer.
    """
    held = next((part for part in unread if part.held_at is not None), None)
    if held is not None:
        whose = f" by {held.held_by}" if held.held_by else ""
        error = UnreachableError(
            f"cannot read {topic}/{held.partition} to its end: a transaction has been open{whose} at offset "
            f"{held.held_at} for {seconds:g} seconds, and hides what was written behind it up to {held.end}",
            subject=subject,
            remedy=_HELD_REMEDY,
        )
        return error if beside is None else _both(error, beside)
    where = "; ".join(_where(topic, part) for part in unread[:2])
    if beside is not None:
        return _both(beside, where) if where else beside
    return UnreachableError(
        f"cannot read {topic} to its end within {seconds:g} seconds{': ' if where else ''}{where}",
        subject=subject,
        remedy=f"Check that its partitions have leaders. {TRIED_AGAIN}",
    )


def _where(topic: str, part: UnreadPart) -> str:
    place = f"{topic}/{part.partition}"
    if part.reaches >= 0:
        by = "a broker" if part.leader is None else f"broker {part.leader}"
        return (
            f"{place} ends at {part.end} by {by}, and was written to up to {part.reaches}: that broker does not know "
            f"who leads it now, as one that has lost its connection to the controllers"
        )
    if part.leader == -1:
        return f"{place} has no leader"
    led = "" if part.leader is None else f", which broker {part.leader} leads,"
    if part.end < 0:
        return f"the end of {place}{led} was not told"
    return f"{place}{led} was read to {part.position} of {part.end}"


def _both(first: ReplicatorError, second: ReplicatorError | str) -> ReplicatorError:
    """One error that says both; its kind is that of the first."""
    said = second if isinstance(second, str) else f"beside that, {second.message}"
    remedies = [first.remedy] if isinstance(second, str) else [first.remedy, second.remedy]
    remedy = " ".join(dict.fromkeys(each for each in remedies if each))
    return type(first)(f"{first.message}; {said}", subject=first.subject, remedy=remedy)
