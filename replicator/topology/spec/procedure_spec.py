"""What runs around a role change: how writers are fenced, and hooks."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from replicator.topology.spec.fields import Duration, Spec, complaint

Command = Annotated[list[str], Field(min_length=1)]
"""A program and its arguments; no shell."""


class AclFencing(Spec):
    """Writers are denied WRITE by the brokers."""

    method: Literal["acl"]
    """Deny ACLs on the link's topics."""
    principals: list[str] | None = None
    """Whom to deny; needed unless the replicator's own principal is a super user."""
    fence_passive: bool = False
    """Also fences writers on the passive side."""


class CommandFencing(Spec):
    """Writers are stopped by commands."""

    method: Literal["command"]
    """Your own programs."""
    fence: Command
    """Keeps writers off."""
    unfence: Command
    """Lets writers on."""
    fence_passive: bool = False
    """Also fences writers on the passive side."""


class ManualFencing(Spec):
    """The operator states that writers are off."""

    method: Literal["manual"]
    """By statement; writes that bypass it are still detected."""
    fence_passive: bool = False
    """Also fences writers on the passive side."""


Fencing = Annotated[AclFencing | CommandFencing | ManualFencing, Field(discriminator="method")]


class Hook(Spec):
    """One thing to run: a command or a webhook, with a time limit."""

    command: Command | None = None
    """A program and its arguments."""
    webhook: str | None = Field(default=None, pattern="^https?://")
    """A URL that gets a POST."""
    timeout: Annotated[float, Duration(least="1s", most="1h")] = 30.0
    """How long it may take; default 30s."""


class HooksSpec(Spec):
    """What to run at each step of a role change."""

    before_fence: list[Hook] | None = None
    """Before writers are fenced."""
    after_fence: list[Hook] | None = None
    """After writers are fenced."""
    before_promote: list[Hook] | None = None
    """Before the new side takes writers."""
    after_promote: list[Hook] | None = None
    """After the new side takes writers."""


class Witness(Spec):
    """Who is asked whether the active side is really gone; exactly one of the two."""

    cluster: str | None = None
    """Alias of a third cluster, in which workers note which clusters they can reach."""
    http: str | None = Field(default=None, pattern="^https?://")
    """A URL that answers `{"down": true}` or `{"down": false}` to a GET with `?cluster=ALIAS`."""

    @model_validator(mode="after")
    def _exactly_one(self) -> "Witness":
        if (self.cluster is None) == (self.http is None):
            raise complaint("a witness is a cluster or a URL", "give cluster or http, and not both")
        return self


class AutomaticFailover(Spec):
    """Promotes the passive side without asking; only with a witness."""

    witness: Witness
    """Who must also find the active side unreachable."""
    after: Annotated[float, Duration(least="5s", most="1h")] = 30.0
    """How long every probe and every answer of the witness must have found it unreachable; default 30s."""
    interval: Annotated[float, Duration(least="500ms", most="1m")] = 2.0
    """How often is probed; default 2s."""
    max_lost_records: int = Field(default=0, ge=0)
    """How many records may be lost at most, as estimated; more waits for a person. Default 0."""


class FailoverSpec(Spec):
    """What may happen by itself; nothing by default."""

    automatic: AutomaticFailover | None = None
    """Promotion with a witness; off unless given."""
