"""Settings of an existing target topic that a copy would suffer from. Pure.

What the controller repairs by itself is no finding. A **problem** means records may be lost or
refused; a **warning** means that room is missing and a rare record may go to quarantine.
"""

from collections.abc import Mapping

from replicator.control.reconcile.topic_selection import SelectedTopic
from replicator.policy.copies.engines import flow_engine
from replicator.policy.copies.topic_config import (
    HEADER_HEADROOM_BYTES,
    MAX_MESSAGE_BYTES,
    TIMESTAMP_BOUNDS,
    ConfigValue,
    number,
)
from replicator.problem import Problem

_CLEANUP = "cleanup.policy"
_BEFORE = "message.timestamp.before.max.ms"


def config_findings(
    wanted: SelectedTopic,
    source: Mapping[str, ConfigValue],
    target: Mapping[str, ConfigValue],
    *,
    pending: frozenset[str],
) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Problems and warnings about a target topic; ``pending`` are settings about to be repaired."""
    overridden = {name for name, _ in wanted.flow.policy.sync_topics.overrides}
    problems: list[Problem] = []
    warnings: list[Problem] = []
    if _CLEANUP not in pending | overridden:
        ours, theirs = _policies(source.get(_CLEANUP)), _policies(target.get(_CLEANUP))
        if ours and theirs and ours != theirs:
            problems.append(
                _drift(
                    wanted, f"cleanup.policy is {_text(theirs)} on the target, {_text(ours)} at the "
                    "source: the two will not keep the same records",
                    f"Set cleanup.policy of '{wanted.target}' to {_text(ours)}, or state it in "
                    "sync.topics.overrides.",
                )
            )  # fmt: skip
    if _BEFORE not in pending:
        ours_ms, theirs_ms = number(source.get(_BEFORE)), number(target.get(_BEFORE))
        if theirs_ms is not None and theirs_ms < (ours_ms or TIMESTAMP_BOUNDS[_BEFORE]):
            problems.append(
                _drift(
                    wanted, f"{_BEFORE} of '{wanted.target}' is {theirs_ms}: older records will be "
                    "refused",
                    "Raise it, or state it in sync.topics.overrides.",
                )
            )  # fmt: skip
    if MAX_MESSAGE_BYTES not in pending:
        ours_bytes, theirs_bytes = (
            number(source.get(MAX_MESSAGE_BYTES)),
            number(target.get(MAX_MESSAGE_BYTES)),
        )
        marks = flow_engine(wanted.flow.policy).engine == "records"
        if ours_bytes is not None and theirs_bytes is not None:
            if theirs_bytes < ours_bytes:
                warnings.append(
                    _drift(
                        wanted, f"'{wanted.target}' takes {theirs_bytes} bytes, the source takes "
                        f"{ours_bytes}: larger records will go to quarantine",
                        f"Raise max.message.bytes of '{wanted.target}'.",
                    )
                )  # fmt: skip
            elif marks and theirs_bytes < ours_bytes + HEADER_HEADROOM_BYTES:
                warnings.append(
                    _drift(
                        wanted, f"'{wanted.target}' has no room for the provenance header beyond the "
                        f"source's limit of {ours_bytes} bytes",
                        f"Raise max.message.bytes of '{wanted.target}' to "
                        f"{ours_bytes + HEADER_HEADROOM_BYTES}.",
                    )
                )  # fmt: skip
    return tuple(problems), tuple(warnings)


def _drift(wanted: SelectedTopic, detail: str, remedy: str) -> Problem:
    return Problem("CONFIG_DRIFT", wanted.topic, detail, remedy)


def _policies(setting: ConfigValue | None) -> frozenset[str]:
    if setting is None or setting.value is None:
        return frozenset()
    return frozenset(part.strip() for part in setting.value.split(",") if part.strip())


def _text(policies: frozenset[str]) -> str:
    return ",".join(sorted(policies))
