"""One enabled flow of a properties file as the policy of a link. Pure.

The answer also says which entry went where, relative to the link, because the place of the link in
the file is decided later.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from replicator.mm2.configuration.import_naming import NamingImport, import_naming
from replicator.mm2.configuration.import_selection import import_groups, import_topics
from replicator.mm2.properties.java_properties import Entry
from replicator.mm2.properties.scopes import Settings, is_true, number
from replicator.mm2.properties.unmapped import Outcome
from replicator.policy.capacity.lane_assignment import MAX_LANES
from replicator.policy.copies.topic_config import EXCLUDED
from replicator.topology.spec.sync_spec import MAX_REPLICATION_FACTOR
from replicator.topology.spec.units import format_duration

AUTO_LANES_MOST = 8
EMITTED = ("emit.heartbeats.enabled", "emit.checkpoints.enabled", "emit.offset-syncs.enabled")
_SHORTEST, _LONGEST = 0.1, 3600.0
_RESETS = tuple(
    f"{prefix}auto.offset.reset"
    for prefix in (
        "consumer.",
        "source.consumer.",
        "consumer.override.",
        "source.consumer.override.",
    )
)
_ISOLATION = tuple(name.replace("auto.offset.reset", "isolation.level") for name in _RESETS)


@dataclass(slots=True)
class FlowImport:
    """A flow's policy and what became of each entry: kind, and path inside the link or reason.

    ``source`` and ``target`` are MirrorMaker 2's alias and the alias here.
    """

    source: tuple[str, str]
    target: tuple[str, str]
    naming: NamingImport
    policy: dict[str, Any] = field(default_factory=dict)
    findings: list[tuple[Entry, Outcome, str]] = field(default_factory=list)
    notes: list[tuple[Entry, str]] = field(default_factory=list)

    @property
    def copies(self) -> bool:
        """Whether any topic is left to copy."""
        return bool(self.policy.get("topics", {}).get("include"))

    def put(self, path: str, value: object, entry: Entry | None, note: str = "") -> None:
        """Sets a field of the policy by its dotted path."""
        *parents, last = path.split(".")
        place = self.policy
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
        if entry is not None:
            self.found(entry, "mapped", path)
            if note:
                self.notes.append((entry, note))

    def found(self, entry: Entry, outcome: Outcome, text: str) -> None:
        """Notes what became of an entry."""
        self.findings.append((entry, outcome, text))


def import_flow(settings: Settings, source: tuple[str, str], target: tuple[str, str],
                aliases: tuple[str, ...]) -> FlowImport:  # fmt: skip
    """The policy of ``source -> target``; every field that MirrorMaker 2 sets differently from here."""

    def find(*names: str) -> Entry | None:
        return settings.for_flow(source[0], target[0], *names)

    policy = find("replication.policy.class")
    separator = find("replication.policy.separator")
    naming = import_naming(source, target, policy, separator)
    flow = FlowImport(source, target, naming)
    switch = settings.of_flow(source[0], target[0], "enabled") or settings.everywhere("enabled")
    if switch is not None:
        flow.found(switch, "mapped", "")
    import_topics(flow, find("topics"), find("topics.exclude", "topics.blacklist"),
                  aliases=aliases, also_excluded=naming.exclude)  # fmt: skip
    import_groups(flow, find("groups"), find("groups.exclude", "groups.blacklist"))
    flow.policy["naming"] = naming.naming
    for entry in (policy, separator):
        if entry is not None:
            flow.found(entry, "not supported" if naming.refused else "mapped",
                       naming.refused or "naming")  # fmt: skip
    _start(flow, settings)
    _delivery(flow, settings)
    _lanes(flow, find("tasks.max"))
    _sync(flow, find)
    _intervals(flow, find)
    _compatibility(flow, settings)
    return flow


def _start(flow: FlowImport, settings: Settings) -> None:
    entry = _client_key(flow, settings, _RESETS)
    if entry is not None:
        value = entry.value.strip().lower()
        if value in {"earliest", "latest"}:
            flow.put("startFrom", value, entry)
        else:
            flow.found(
                entry, "not supported", "write startFrom: earliest, latest or {timestamp: …}"
            )
    entry = _client_key(flow, settings, _ISOLATION)
    if entry is not None:
        if entry.value.strip().lower() == "read_committed":
            flow.found(entry, "not needed", "records of aborted transactions are never copied")
        else:
            flow.found(
                entry, "not supported", "records of open and aborted transactions are never copied"
            )


def _client_key(flow: FlowImport, settings: Settings, names: tuple[str, ...]) -> Entry | None:
    """A setting of the source's consumer: the flow's own word, else that of the source cluster."""
    for name in names:
        found = settings.of_flow(flow.source[0], flow.target[0], name)
        if found is not None:
            return found
    return settings.of_cluster(flow.source[0], names[0])


def _delivery(flow: FlowImport, settings: Settings) -> None:
    entry = settings.of_cluster(flow.target[0], "exactly.once.source.support")
    if entry is None:
        return
    if entry.value.strip().lower() == "enabled":
        flow.put("delivery", "exactly-once", entry)
    else:
        why = "delivery is exactly-once by default; delivery: at-least-once costs less latency"
        flow.found(entry, "not needed", why)


def _lanes(flow: FlowImport, entry: Entry | None) -> None:
    if entry is None:
        return
    tasks = number(entry)
    if tasks is None or tasks < 1:
        flow.found(entry, "not supported", "it is not a number of tasks")
    elif tasks <= AUTO_LANES_MOST:
        why = f"lanes: auto takes one for each source partition, up to {AUTO_LANES_MOST}"
        flow.found(entry, "not needed", why)
    else:
        note = f"at most {MAX_LANES}" if tasks > MAX_LANES else ""
        flow.put("lanes", min(tasks, MAX_LANES), entry, note)


def _sync(flow: FlowImport, find: Callable[..., Entry | None]) -> None:
    if (entry := find("sync.topic.configs.enabled")) is not None:
        flow.put("sync.topics.configs", is_true(entry), entry)
    if (entry := find("replication.factor")) is not None:
        replicas = number(entry)
        if replicas is not None and 1 <= replicas <= MAX_REPLICATION_FACTOR:
            flow.put("sync.topics.replicationFactor", replicas, entry)
        else:
            note = "the source's, at least 3, at most the target's brokers"
            flow.put("sync.topics.replicationFactor", "auto", entry, note)
    if (entry := find("config.properties.exclude", "config.properties.blacklist")) is not None:
        flow.found(entry, *_excluded_settings(entry))
    if (entry := find("use.defaults.from")) is not None:
        if entry.value.strip().lower() == "target":
            flow.found(entry, "not needed", "the target's defaults hold")
        else:
            flow.found(
                entry, "not supported", "the target's defaults hold; see sync.topics.overrides"
            )
    if (entry := find("sync.topic.acls.enabled")) is not None:
        flow.put("sync.acls", is_true(entry), entry)
    # MirrorMaker 2 leaves the positions of groups alone unless it is told otherwise.
    entry = find("sync.group.offsets.enabled")
    flow.put("sync.groups.enabled", is_true(entry), entry)


def _excluded_settings(entry: Entry) -> tuple[Outcome, str]:
    listed = {part.strip() for part in entry.value.split(",") if part.strip()}
    more, fewer = sorted(listed - EXCLUDED.keys()), sorted(EXCLUDED.keys() - listed)
    left_out = f"; never copied here: {', '.join(fewer)}" if fewer else ""
    if more:
        why = f"pin these settings with sync.topics.overrides: {', '.join(more)}"
        return "not supported", f"which settings are copied is fixed; {why}{left_out}"
    return "not needed", f"these settings are never copied{left_out}"


def _intervals(flow: FlowImport, find: Callable[..., Entry | None]) -> None:
    for switch in ("refresh.topics.enabled", "refresh.groups.enabled"):
        entry = find(switch)
        if entry is not None and is_true(entry):
            flow.found(entry, "not needed", "new ones are always looked for")
        elif entry is not None:
            why = "new ones are always looked for; list names to keep others out"
            flow.found(entry, "not supported", why)
    for name, path in (
        ("refresh.topics.interval.seconds", "discoveryInterval"),
        ("sync.group.offsets.interval.seconds", "sync.groups.interval"),
    ):
        entry = find(name)
        if entry is None:
            continue
        seconds = number(entry)
        if seconds is None or seconds <= 0:
            flow.found(entry, "not supported", f"an interval is from {_SHORTEST} s to an hour")
            continue
        kept = min(float(seconds), _LONGEST)
        note = "an hour is the longest" if kept < seconds else ""
        flow.put(path, format_duration(kept), entry, note)


def _compatibility(flow: FlowImport, settings: Settings) -> None:
    """MirrorMaker 2's own topics: all three kinds or none, and none unless the file asks for them."""
    asked = [
        entry
        for name in EMITTED
        if (entry := settings.for_flow(flow.source[0], flow.target[0], name)) is not None
    ]
    wanted = [entry for entry in asked if is_true(entry)]
    for entry in asked:
        if not is_true(entry):
            why = "heartbeats, checkpoints and offset-syncs go together, in mm2Compatibility"
            flow.found(entry, "not supported" if wanted else "not needed", why)
        else:
            # Its topics are called after the aliases, and the separator is a dot.
            known = flow.naming.naming in ("prefix", "identity")
            note = "" if known else "its topics carry the topology's aliases and a dot"
            flow.put("mm2Compatibility", True, entry, note)
    location = settings.for_flow(flow.source[0], flow.target[0], "offset-syncs.topic.location")
    if location is not None and location.value.strip().lower() == "source":
        flow.found(location, "not needed", "with mm2Compatibility, offset-syncs go to the source")
    elif location is not None:
        flow.found(
            location, "not supported", "with mm2Compatibility, offset-syncs go to the source"
        )
