"""Records of the source that whole batches brought from a cluster to which they must not go back.

The client library shows no producer ids, so a session that copies record by record fetches the source's
batches a second time to see them. Whether it has to is found out beside the take-over: only where the
source's registry holds producers of a blocked cluster. Where both directions run, the other one may go over to
whole batches at any time, by a file that this worker does not have yet: there the registry is asked again before
anything is stored.
"""

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from replicator.dataplane.transport.spec import LaneSpec
from replicator.errors import NotFoundError, ReplicatorError, UnseenCopiesError
from replicator.formats.producer_registry import RegistryMemory, decode_memory, decode_producer
from replicator.identifiers import control_topic, topologies_from
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.compacted_read import read_compacted

if TYPE_CHECKING:
    from replicator.batches.registry.copied_ranges import CopiedRanges
    from replicator.batches.registry.producer_registry import ProducerRegistry


class ReturnedRecords:
    """Of one session; for its thread, and one of its own that only reads the registry."""

    def __init__(self, spec: LaneSpec, *, client_id: str) -> None:
        """Begins to read the registry where the answer is not known beforehand."""
        self._spec = spec
        self._client_id = client_id
        self._memory = RegistryMemory()
        self._ranges: CopiedRanges | None = None
        self._registry: ProducerRegistry | None = None
        # Whole batches with one session record by record: both ways of the pair write such copies. So may another
        # topology at any time, by a file that nobody here reads.
        looks = spec.settings.engine == "batches" or spec.settings.met_by_others
        self._active: bool | None = True if looks else None
        self._found: bool | None = None
        self._reading = threading.Thread(target=self._read, name="registry", daemon=True)
        if self._active is None:
            self._reading.start()

    @property
    def active(self) -> bool:
        """Whether every record has to be asked about; waits for the registry the first time.

        Raises:
            ReplicatorError: the registry cannot be read now, so nothing may be copied.
        """
        if self._active is None:
            self._reading.join()
            self._active = self._any() if self._found is None else self._found
        return self._active

    def remember(self, records: Mapping[bytes, bytes]) -> None:
        """Takes from the lane's partition of the checkpoints topic what was seen of the registry before.

        Raises:
            StoredFormatError: it cannot be read.
        """
        self._memory = decode_memory(records)
        if self._memory.ids:
            self._active = True

    def holds(self, topic: str, partition: int, offset: int) -> bool:
        """Whether the record at a source offset must not go back.

        Raises:
            ReplicatorError: the source cannot be read now; nothing is known about the record.
        """
        if self._ranges is None:
            self._ranges = self._open()
        return self._ranges.holds(topic, partition, offset)

    def confirm_none(self) -> None:
        """To be asked before records are stored that nobody looked at.

        A registration stands there before the first batch under its id, so what was read until now and came back
        is told by what the registry holds now.

        Raises:
            UnseenCopiesError: some of the records may have come back; the next session looks.
            ReplicatorError: the registry cannot be read now, so nothing may be stored.
        """
        if self._active is not False or not self._spec.settings.cyclic:
            return
        if self._registry is None:
            self._registry = self._opened()
        elif not self._registry.read_if_grown():
            return
        blocked = self._spec.settings.blocked
        if any(each.source in blocked for each in self._registry.registered.values()):
            raise UnseenCopiesError(
                f"whole batches have come to {self._spec.source.alias} from where this lane copies to",
                subject=f"cluster:{self._spec.source.alias}",
                remedy="The lane goes on from its checkpoints, and looks for them from now on.",
            )

    def close(self) -> None:
        """Hangs up."""
        if self._ranges is not None:
            self._ranges.close()
        if self._registry is not None:
            self._registry.close()

    def _open(self) -> "CopiedRanges":
        # Here, because the protocol's codec takes half a second to import.
        from replicator.batches.registry.copied_ranges import CopiedRanges

        if self._registry is None:
            self._registry = self._opened()
        spec, source_of = self._spec, self._registry.source_of
        return CopiedRanges(
            spec.source, source_of, blocked=spec.settings.blocked, client_id=self._client_id
        )

    def _opened(self) -> "ProducerRegistry":
        """The registry, read to its end."""
        from replicator.batches.registry.other_topologies import registry_of_source

        spec = self._spec
        registry = registry_of_source(
            spec.source, spec.topology, blocked=spec.settings.blocked, client_id=self._client_id
        )
        registry.expect(self._memory)
        registry.read()
        return registry

    def _read(self) -> None:
        try:
            self._found = self._any()
        except ReplicatorError:
            self._found = None  # asked again when it is needed, and then told

    def _any(self) -> bool:
        """Whether a registry of the source holds a producer of a blocked cluster."""
        spec = self._spec
        if self._registers(spec.topology):
            return True
        with ClusterAdmin(spec.source, client_id=self._client_id) as admin:
            others = topologies_from(spec.settings.blocked, admin.topic_partitions())
        return any(
            self._registers(name, known_to_exist=True) for name in sorted(others - {spec.topology})
        )

    def _registers(self, topology: str, *, known_to_exist: bool = False) -> bool:
        try:
            control = read_compacted(
                self._spec.source, control_topic(topology), client_id=self._client_id,
                past_open_transactions=True, known_to_exist=known_to_exist,
            )[0]  # fmt: skip
        except NotFoundError:
            return False  # nothing was ever copied there
        found = (decode_producer(key, value) for key, value in control.items())
        return any(
            each is not None and each.source in self._spec.settings.blocked for each in found
        )
