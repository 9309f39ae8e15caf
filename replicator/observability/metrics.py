"""The Prometheus face of a worker; the only module that knows ``prometheus_client``.

``Metrics`` is fed every lane statistics message (``observe``) and renders one scrape from a
snapshot (``render``). It decides nothing: values come from ``totals`` and ``samples``, names from
the catalogue.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample as Line

from replicator.formats.lane_stats import LaneStats
from replicator.observability.build import Build, current_build
from replicator.observability.catalogue import Metric
from replicator.observability.samples import Families, Sample
from replicator.observability.snapshot import MetricsSnapshot
from replicator.observability.totals import Totals

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


class Metrics:
    """All metrics of one worker. Safe to observe and render from different threads."""

    def __init__(
        self,
        *,
        bounds_seconds: Sequence[float],
        detail: bool = False,
        build: Build | None = None,
    ) -> None:
        """``bounds_seconds`` are the upper bounds of the lanes' buckets, without infinity."""
        self._bounds = tuple(bounds_seconds)
        self._detail = detail
        self._build = build or current_build()
        self._totals = Totals(buckets=len(self._bounds) + 1, detail=detail)
        self._lock = threading.Lock()

    def observe(self, lanes: Iterable[LaneStats]) -> None:
        """Adds statistics as they arrive from the lanes."""
        with self._lock:
            for lane in lanes:
                self._totals.observe(lane)

    def render(self, snapshot: MetricsSnapshot) -> bytes:
        """One scrape in the Prometheus text format; observes the snapshot's lanes first."""
        with self._lock:
            for lane in snapshot.lanes:
                self._totals.observe(lane)
            families = list(
                Families(
                    totals=self._totals,
                    snapshot=snapshot,
                    bounds_seconds=self._bounds,
                    build=self._build,
                    detail=self._detail,
                )
            )
        return generate_latest(_Once(families, topology=snapshot.topology, detail=self._detail))


class _Once(Collector):
    """Hands the client library families that are ready."""

    def __init__(
        self, families: list[tuple[Metric, list[Sample]]], *, topology: str, detail: bool
    ) -> None:
        self._families = families
        self._topology = topology
        self._detail = detail

    def collect(self) -> Iterator[Family]:
        for declared, samples in self._families:
            kind = "gauge" if declared.kind == "info" else declared.kind
            family = Family(declared.full_name.removesuffix("_total"), declared.help, kind)
            names = declared.label_names(detail=self._detail)
            for sample in samples:
                labels = dict(zip(names, (self._topology, *sample.values), strict=True))
                if sample.bound:
                    labels["le"] = sample.bound
                family.samples.append(
                    Line(declared.full_name + sample.suffix, labels, sample.value)
                )
            yield family


def read_exposition(exposition: str) -> tuple[tuple[str, dict[str, str], float], ...]:
    """The samples of a scrape: full name, labels, value.

    Raises:
        ValueError: it is no Prometheus text.
    """
    return tuple(
        (line.name, dict(line.labels), line.value)
        for family in text_string_to_metric_families(exposition)
        for line in family.samples
    )
