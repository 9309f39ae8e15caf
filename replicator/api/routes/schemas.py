"""The bodies the API takes and the errors it answers with, as its OpenAPI document shows them."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from replicator.api.routes.provider import PauseTarget
from replicator.identifiers import parse_flow_id

FlowText = Annotated[
    str,
    Field(
        max_length=200,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?->[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        description="A flow as people write it: source->target.",
        examples=["east->west"],
    ),
]
TopicText = Annotated[str, Field(min_length=1, max_length=249, pattern=r"^[a-zA-Z0-9._-]+$")]


class PauseRequest(BaseModel):
    """What to pause: a flow, a topic of it, or a partition of that topic."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    flow: FlowText
    topic: TopicText | None = Field(default=None, description="Topic on the source.")
    partition: int | None = Field(
        default=None, ge=0, le=2**31 - 1, description="Needs a topic beside it."
    )

    @model_validator(mode="after")
    def _partition_has_a_topic(self) -> "PauseRequest":
        if self.partition is not None and self.topic is None:
            raise ValueError("a partition needs the topic it belongs to")
        parse_flow_id(self.flow)
        return self

    def target(self) -> PauseTarget:
        """The same, without the HTTP edge."""
        return PauseTarget(flow=self.flow, topic=self.topic, partition=self.partition)


class ResumeRequest(PauseRequest):
    """What to resume, and whether what was lost at the source is given up."""

    accept_gap: bool = Field(
        default=False,
        alias="acceptGap",
        description="Go on past source data that is gone; what was given up is journalled.",
    )


class ErrorDetail(BaseModel):
    """What happened, where, and what to do."""

    code: str
    subject: str
    detail: str
    remedy: str


class ErrorAnswer(BaseModel):
    """Every answer that is not the resource."""

    error: ErrorDetail


class HealthAnswer(BaseModel):
    """An answer to a probe."""

    ok: bool
    reasons: list[str]
    details: list[str] = []
