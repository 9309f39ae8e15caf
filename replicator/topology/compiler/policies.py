"""From policy fields of the file to the frozen policy of a flow, defaults filled in."""

from dataclasses import replace
from typing import Any

from replicator.policy.values import (
    BulkSync,
    DropRule,
    GroupSync,
    HeaderMatch,
    LinkPolicy,
    Naming,
    NamingKind,
    Selection,
    StartFrom,
    Throttle,
    TopicSync,
)
from replicator.topology.spec.policy_spec import (
    AUTO_LANES,
    FilterSpec,
    GroupsSpec,
    NamingTemplate,
    PolicySpec,
    StartTimestamp,
    TopicsSpec,
)
from replicator.topology.spec.sync_spec import BulkSyncSpec, GroupSyncSpec, SyncSpec, TopicSyncSpec

DEFAULT_GROUPS = Selection(include=("*",), exclude=("console-consumer-*", "__*"))


def link_policy(spec: PolicySpec, *, default_naming: NamingKind) -> LinkPolicy:
    """The policy of a flow; its shape and direction decide the naming when the file does not."""
    topics = spec.topics or TopicsSpec()
    sync = spec.sync or SyncSpec()
    policy = LinkPolicy(
        topics=Selection(tuple(topics.include or ()), tuple(topics.exclude or ())),
        groups=_groups(spec.groups or GroupsSpec()),
        naming=_naming(spec, default_naming),
        start_from=_start(spec),
        throttle=_throttle(spec),
        topic_priorities=tuple((topics.priorities or {}).items()),
        sync_topics=_topic_sync(sync.topics or TopicSyncSpec()),
        sync_groups=_group_sync(sync.groups or GroupSyncSpec()),
        bulk_sync=_bulk_sync(spec.bulk_sync or BulkSyncSpec()),
        filters=tuple(_drop_rule(entry) for entry in spec.filters or ()),
        transforms=tuple(spec.transforms or ()),
    )
    given: dict[str, Any] = {
        "delivery": spec.delivery,
        "engine": spec.engine,
        "commit_interval_seconds": spec.commit_interval,
        "lanes": None if spec.lanes == AUTO_LANES else spec.lanes,
        "provenance": spec.provenance,
        "single_provenance": spec.provenance,
        "priority": spec.priority,
        "sync_acls": sync.acls,
        "discovery_interval_seconds": spec.discovery_interval,
        "on_record_error": spec.on_record_error,
        "on_truncation": spec.on_truncation,
        "runtime": spec.runtime,
        "relay": spec.relay,
        "mm2_compatibility": spec.mm2_compatibility,
    }
    # What the file leaves out keeps the default that `LinkPolicy` gives it.
    return replace(policy, **{name: value for name, value in given.items() if value is not None})


def _groups(spec: GroupsSpec) -> Selection:
    return Selection(
        DEFAULT_GROUPS.include if spec.include is None else tuple(spec.include),
        DEFAULT_GROUPS.exclude if spec.exclude is None else tuple(spec.exclude),
    )


def _naming(spec: PolicySpec, default: NamingKind) -> Naming:
    if isinstance(spec.naming, NamingTemplate):
        return Naming("template", spec.naming.template)
    return Naming(spec.naming or default)


def _start(spec: PolicySpec) -> StartFrom:
    if isinstance(spec.start_from, StartTimestamp):
        return StartFrom("timestamp", spec.start_from.timestamp)
    return StartFrom(spec.start_from or "earliest")


def _throttle(spec: PolicySpec) -> Throttle:
    if spec.throttle is None:
        return Throttle()
    return Throttle(spec.throttle.bytes_per_second, spec.throttle.records_per_second)


def _topic_sync(spec: TopicSyncSpec) -> TopicSync:
    default = TopicSync()
    return TopicSync(
        configs=default.configs if spec.configs is None else spec.configs,
        partitions=default.partitions if spec.partitions is None else spec.partitions,
        deletions=spec.deletions or default.deletions,
        replication_factor=spec.replication_factor,
        overrides=tuple(sorted((spec.overrides or {}).items())),
    )


def _group_sync(spec: GroupSyncSpec) -> GroupSync:
    default = GroupSync()
    return GroupSync(
        enabled=default.enabled if spec.enabled is None else spec.enabled,
        interval_seconds=spec.interval or default.interval_seconds,
        rewind=spec.rewind or default.rewind,
    )


def _bulk_sync(spec: BulkSyncSpec) -> BulkSync:
    default = BulkSync()
    return BulkSync(
        mode=spec.mode or default.mode,
        threshold_bytes=spec.threshold or default.threshold_bytes,
    )


def _drop_rule(spec: FilterSpec) -> DropRule:
    condition = spec.drop_if
    headers = sorted((condition.header or {}).items())
    return DropRule(
        headers=tuple(HeaderMatch(name, value) for name, value in headers),
        key_prefix=condition.key_prefix,
        tombstone=bool(condition.tombstone),
    )
