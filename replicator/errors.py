"""The one error tree.

Three axes as class attributes tell a caller what to do without reading text: ``retriable`` (try
again, nothing was decided), ``fatal`` (this client or process must stop) and ``partition_scoped``
(only one partition is concerned). An unknown outcome is its own class: neither done nor failed.

Each error a person may see carries ``code`` (a problem code of ``status``), ``subject`` (what it is
about), and ``remedy`` (what to do). Foreign errors are mapped once, in the room of their library.
Secrets that this process has read are taken out of the texts when the error is made, because it may
travel to where they are not known: another process, a control topic, a report.
"""

from collections.abc import Mapping

from replicator.redaction import redact_known


class ReplicatorError(Exception):
    """Base of everything this product raises on purpose."""

    retriable = False
    fatal = False
    partition_scoped = False
    code = "FAILED"
    exit_code = 1

    def __init__(self, message: str, *, subject: str = "", remedy: str = "") -> None:
        self.message = redact_known(message)
        self.subject = subject
        self.remedy = redact_known(remedy)
        super().__init__(self.message)

    def paragraph(self) -> str:
        """One paragraph for a person: what, where, what to do."""
        text = self.message if not self.subject else f"{self.subject}: {self.message}"
        if not text.endswith((".", "!", "?")):
            text += "."
        return f"{text} {self.remedy}".strip()


class InputError(ReplicatorError):
    """The input is wrong: usage, topology file, a value that cannot be."""

    code = "INPUT"
    exit_code = 2


class RefusedError(ReplicatorError):
    """A safety check refused; nothing was changed."""

    code = "REFUSED"
    exit_code = 3


class SecretUnavailableError(InputError):
    """A secret reference (env or file) does not resolve. Never carries the secret."""

    code = "SECRET_UNAVAILABLE"


class ClusterError(ReplicatorError):
    """Something about one cluster; ``subject`` is ``cluster:ALIAS``."""


class UnreachableError(ClusterError):
    """No broker of the cluster answers; other flows go on."""

    retriable = True
    code = "UNREACHABLE"


class AuthenticationFailedError(ClusterError):
    """Wrong credentials or a certificate that is not trusted."""

    retriable = True  # credentials rotate in place
    code = "AUTHENTICATION_FAILED"


class NotAuthorizedError(ClusterError):
    """The principal lacks a right; the message names the right and the resource."""

    retriable = True  # rights may be granted while we run
    code = "NOT_AUTHORIZED"


class UnsupportedBrokerError(ClusterError):
    """The broker is too old or lacks a feature that is needed."""

    code = "UNSUPPORTED_BROKER"


class AliasConflictError(ClusterError):
    """An alias is bound to another cluster id, or two aliases are one cluster."""

    code = "ALIAS_CONFLICT"


class BrokerRefusedError(ClusterError):
    """A broker refused one request for a reason that does not pass with time."""

    code = "TARGET_REFUSES"


class AuthorizerMissingError(BrokerRefusedError):
    """The cluster has no authorizer, so there are no ACLs to read or to add."""


class GroupInUseError(BrokerRefusedError):
    """A group has members, so it takes no positions of anybody else."""

    code = "GROUP_REFUSED"

    def __init__(self, group: str, *, subject: str, doing: str) -> None:
        super().__init__(
            f"cannot {doing}: the group has members",
            subject=subject,
            remedy=f"Stop the consumers that use the group '{group}': it is the replicator's own.",
        )


TRIED_AGAIN = "A worker tries it again by itself; a command has to be run again."
"""What to do about what passes, where the same code serves both."""


class TransientBrokerError(ClusterError):
    """A broker asked to be tried again (leader moves, coordinator loading)."""

    retriable = True
    code = "UNREACHABLE"


class HeldBackError(TransientBrokerError):
    """A quota of the cluster lets nothing through now."""

    code = "QUOTA_EXCEEDED"


class NotFoundError(ClusterError):
    """A topic, partition or group does not exist."""

    code = "NOT_FOUND"


class AlreadyExistsError(ClusterError):
    """What was to be created is there already."""

    code = "ALREADY_EXISTS"


class FencedError(ReplicatorError):
    """Another owner initialised the same transactional id: stop writing at once."""

    fatal = True
    code = "FENCED"


class UnknownOutcomeError(ReplicatorError):
    """A request may or may not have taken effect: re-initialise and re-read, never assume."""

    code = "UNKNOWN_OUTCOME"


class SpentProducerError(UnknownOutcomeError):
    """What was ended is known, but a late repetition may end what comes next: go on with a new producer."""


class UnseenCopiesError(UnknownOutcomeError):
    """Copies without a header may be among the records of the open unit, and nobody looked: read them again."""


class LogChangedError(ReplicatorError):
    """A target partition has another leader or topic than when it was looked at: look again before anything is stored."""

    retriable = True
    code = "LOG_CHANGED"


class RecordRefusedError(ReplicatorError):
    """The target will never take this record (too large, invalid)."""

    partition_scoped = True
    code = "QUARANTINED"


class RecordTooLargeError(RecordRefusedError):
    """A record has no room in a queue that is empty; ``place`` is its source topic, partition and offset."""

    place: tuple[str, int, int] | None = None


class NotMovingError(ReplicatorError):
    """A partition stands still though records wait, and nobody says why."""

    retriable = True
    partition_scoped = True
    code = "NOT_MOVING"


class PartitionsRefusedError(ReplicatorError):
    """Some target partitions take no writes now; the others do.

    Attributes:
        refusals: why, by target topic and partition.
    """

    retriable = True
    partition_scoped = True

    def __init__(self, refusals: Mapping[tuple[str, int], ReplicatorError]) -> None:
        first = next(iter(refusals.values()))
        super().__init__(first.message, subject=first.subject, remedy=first.remedy)
        self.refusals = refusals


class SourceDataLostError(ReplicatorError):
    """Records vanished at the source before they were copied (truncated or recreated topic)."""

    partition_scoped = True
    code = "TRUNCATED"


class SourceDamagedError(ReplicatorError):
    """What the source gives out at a position cannot be read; nothing behind it is read either."""

    retriable = True  # another replica may hold it undamaged
    partition_scoped = True
    code = "SOURCE_DAMAGED"


class RegistryLostError(ReplicatorError):
    """A source's registry of producer ids lacks some that it held: copies could be taken for records."""

    retriable = True  # it may be restored, or the loss be accepted
    code = "REGISTRY_LOST"


class StoredFormatError(ReplicatorError):
    """A stored record has an unknown version or cannot be read; nothing is guessed."""

    code = "FAILED"


class TargetRegressedError(ReplicatorError):
    """A target partition no longer holds records that it had acknowledged."""

    retriable = True  # the lane copies them again
    partition_scoped = True
    code = "TARGET_REGRESSED"
