"""Which settings of a source topic the copy gets, and how many replicas.

The copy must take every record the source ever took. So settings that only say what a writer may
write are loosened, never tightened, and settings that belong to a cluster rather than to a topic
stay where they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from replicator.policy.values import TopicSync

HEADER_HEADROOM_BYTES = 4096
"""Room for the hop header on topics we create: a hop is at most about 345 bytes (63 of alias, 249 of
topic, 29 of numbers), typically 40, so a record that filled the source's limit still fits after ten
hops of the worst kind."""

AUTO_MINIMUM_REPLICAS = 3

MAX_MESSAGE_BYTES = "max.message.bytes"
_KAFKA_DEFAULT_MAX_MESSAGE_BYTES = 1_048_588

_CLUSTER = "it belongs to the cluster, not to the data"
EXCLUDED: Mapping[str, str] = {
    # MirrorMaker 2's list: what its users expect to stay apart.
    "follower.replication.throttled.replicas": _CLUSTER,
    "leader.replication.throttled.replicas": _CLUSTER,
    "unclean.leader.election.enable": _CLUSTER,
    "min.insync.replicas": "it must fit the replication factor of the target",
    "message.timestamp.type": "the copy keeps the source's timestamps; LogAppendTime would replace them",
    "message.timestamp.difference.max.ms": "it would make the target refuse history",
    # Ours: a target without remote storage refuses topics that ask for it.
    "remote.storage.enable": _CLUSTER,
    "local.retention.bytes": _CLUSTER,
    "local.retention.ms": _CLUSTER,
    "remote.log.copy.disable": _CLUSTER,
    "remote.log.delete.on.disable": _CLUSTER,
}
"""Settings that are never copied, with the reason; `sync.topics.overrides` may still set them."""

TIMESTAMP_BOUNDS: Mapping[str, int] = {
    "message.timestamp.before.max.ms": 2**63 - 1,
    "message.timestamp.after.max.ms": 3_600_000,
}
"""Bounds on timestamps with Kafka's defaults (KIP-937). They judge a record when it is first
written; copied history is older than any writer's records, so a tighter bound would turn it away.
Only looser bounds are copied."""


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """One topic setting as a cluster reports it; `is_default` means no override on the topic."""

    value: str | None
    is_default: bool
    read_only: bool = False
    sensitive: bool = False


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One setting to change on the target; `to_value` None removes the target's override."""

    name: str
    from_value: str | None
    to_value: str | None
    reason: str


def desired_replication_factor(
    wanted: int | None, *, source_replicas: int, target_brokers: int
) -> int:
    """Replicas of a topic we create; None is `auto`.

    `auto` is the source's, at least three because one lost broker must not lose a copy, and no
    more than the target has brokers. A number given by the user is taken as it is.
    """
    if wanted is not None:
        return wanted
    return max(1, min(max(source_replicas, AUTO_MINIMUM_REPLICAS), target_brokers))


def creation_configs(source: Mapping[str, ConfigValue], policy: TopicSync) -> dict[str, str]:
    """The settings a target topic is created with."""
    configs: dict[str, str] = {}
    if policy.configs:
        for name, setting in source.items():
            if _copied(name, setting) and not setting.is_default and setting.value is not None:
                configs[name] = setting.value
        for name, default in TIMESTAMP_BOUNDS.items():
            bound = number(source.get(name))
            if bound is not None and bound > default:
                configs[name] = str(bound)
    limit = number(source.get(MAX_MESSAGE_BYTES)) or _KAFKA_DEFAULT_MAX_MESSAGE_BYTES
    configs[MAX_MESSAGE_BYTES] = str(limit + HEADER_HEADROOM_BYTES)
    configs.update(policy.overrides)
    return dict(sorted(configs.items()))


def config_changes(
    source: Mapping[str, ConfigValue], target: Mapping[str, ConfigValue], policy: TopicSync
) -> tuple[ConfigChange, ...]:
    """What to change on an existing target topic, in order of name; nothing when it agrees."""
    overrides = dict(policy.overrides)
    changes = [
        change
        for name, wanted in overrides.items()
        if (change := _override(name, target.get(name), wanted)) is not None
    ]
    if policy.configs:
        for name in source.keys() - overrides.keys():
            change = _follow(name, source[name], target.get(name))
            if change is not None:
                changes.append(change)
    return tuple(sorted(changes, key=lambda change: change.name))


def _override(name: str, target: ConfigValue | None, wanted: str) -> ConfigChange | None:
    held = None if target is None else target.value
    if held == wanted:
        return None
    return ConfigChange(name, held, wanted, "the topology overrides it")


def _follow(name: str, source: ConfigValue, target: ConfigValue | None) -> ConfigChange | None:
    if target is None or target.read_only:
        return None  # the target's brokers do not know this setting, or do not let it change
    if name == MAX_MESSAGE_BYTES:
        return _raise(name, source, target, headroom=HEADER_HEADROOM_BYTES)
    if name in TIMESTAMP_BOUNDS:
        return _raise(name, source, target, headroom=0)
    if not _copied(name, source):
        return None
    if source.is_default:
        if target.is_default:
            return None
        return ConfigChange(name, target.value, None, "the source has no override")
    if source.value is None or source.value == target.value:
        return None
    return ConfigChange(name, target.value, source.value, "it follows the source")


def _raise(
    name: str, source: ConfigValue, target: ConfigValue, *, headroom: int
) -> ConfigChange | None:
    """Raises a limit to the source's. Never lowers: a wider limit refuses no record.

    Headroom is added only where the target is short by more than the headroom itself, so that two
    topics which follow each other meet and do not chase one another upwards.
    """
    wanted, held = number(source), number(target)
    if wanted is None or held is None or held >= wanted:
        return None
    # Kafka's limits are signed: 32 bits for sizes, 64 for times.
    ceiling = 2**31 - 1 if name == MAX_MESSAGE_BYTES else 2**63 - 1
    short_by = wanted - held
    value = str(min(wanted + (headroom if short_by > headroom else 0), ceiling))
    return ConfigChange(name, target.value, value, "the target would refuse what the source takes")


def _copied(name: str, setting: ConfigValue) -> bool:
    if setting.read_only or setting.sensitive:
        return False
    return name not in EXCLUDED and name not in TIMESTAMP_BOUNDS and name != MAX_MESSAGE_BYTES


def number(setting: ConfigValue | None) -> int | None:
    """A setting as a number; None where it is not set, or none."""
    if setting is None or setting.value is None:
        return None
    try:
        return int(setting.value)
    except ValueError:
        return None
