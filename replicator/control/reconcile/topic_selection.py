"""Which source topics a pair wants on the target, and under which names. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from replicator.control.reconcile.cluster_view import ClusterView
from replicator.identifiers import canary_topic
from replicator.policy.copies.naming import name_problem, target_name
from replicator.policy.copies.selection import select_topics, topic_priority
from replicator.policy.values import Priority
from replicator.problem import Problem
from replicator.topology.plan import FlowPlan, PairPlan


@dataclass(frozen=True, slots=True)
class SelectedTopic:
    """One source topic of one flow; with a ``problem`` it must not be copied."""

    flow: FlowPlan
    topic: str
    target: str
    priority: Priority
    problem: Problem | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Link and source topic."""
        return self.flow.link, self.topic


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """The selected topics of a pair, and where to find one of them.

    Attributes:
        topics: in the order in which they are decided.
        places: index in ``topics`` by source topic.
        targets: source topics by the target topic that they would become.
    """

    topics: tuple[SelectedTopic, ...]
    places: Mapping[str, int] = field(init=False)
    targets: Mapping[str, tuple[str, ...]] = field(init=False)

    def __post_init__(self) -> None:
        targets: dict[str, tuple[str, ...]] = {}
        for one in self.topics:
            targets[one.target] = (*targets.get(one.target, ()), one.topic)
        places = {one.topic: place for place, one in enumerate(self.topics)}
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "targets", targets)

    def get(self, topic: str) -> SelectedTopic | None:
        """The selected topic of that name at the source."""
        place = self.places.get(topic)
        return None if place is None else self.topics[place]


class TopicSelector:
    """Selects the topics of one pair anew only when the names at the source have changed."""

    def __init__(self, pair: PairPlan, aliases: Collection[str]) -> None:
        self.pair = pair
        self._aliases = aliases
        self._names: frozenset[str] | None = None
        self._version = -1
        self._selection = TopicSelection(())

    def select(self, source: ClusterView) -> TopicSelection:
        """The selection from the topics of the source; the same object while it holds."""
        if self._names is not None and source.version == self._version:
            return self._selection
        self._version = source.version
        if self._names is None or source.sizes.keys() != self._names:
            self._names = frozenset(source.sizes)
            self._selection = TopicSelection(selected_topics(self.pair, self._names, self._aliases))
        return self._selection


def selected_topics(
    pair: PairPlan, names: Iterable[str], aliases: Collection[str]
) -> tuple[SelectedTopic, ...]:
    """Applies selection and naming of every flow to the topics of the source.

    A source topic that two links take goes to the first in the file, and two source topics that
    would become one target topic are both named in the problem of the second: one target partition
    has one writer, or offsets could not be translated.
    """
    known = tuple(names)
    taken: dict[str, SelectedTopic] = {}
    sources: set[str] = set()
    wanted: list[SelectedTopic] = []
    for flow in pair.flows:
        selected = select_topics(flow.policy, known, blocked=flow.blocked, aliases=aliases)
        for topic in selected:
            if topic in sources:
                continue
            sources.add(topic)
            target = target_name(flow.policy.naming, flow.source, topic)
            one = SelectedTopic(
                flow, topic, target, topic_priority(flow.policy, topic),
                _problem(flow, topic, target, taken.get(target)),
            )  # fmt: skip
            if one.problem is None:
                taken[target] = one
            wanted.append(one)
    return (*wanted, *_canaries(pair, frozenset(known)))


def _canaries(pair: PairPlan, names: frozenset[str]) -> Iterator[SelectedTopic]:
    """The canary topics that are there: no selection takes them, every flow copies its own."""
    for flow in pair.flows if pair.topology else ():
        name = canary_topic(pair.topology, flow.source, flow.target, flow.link)
        if name in names:
            yield SelectedTopic(flow, name, name, flow.policy.priority)


def _problem(
    flow: FlowPlan, topic: str, target: str, other: SelectedTopic | None
) -> Problem | None:
    illegal = name_problem(target)
    if illegal is not None:
        return Problem(
            "TARGET_REFUSES", topic, f"its name on {flow.target} cannot be: {illegal}",
            "Exclude the topic, or choose another naming for the link.",
        )  # fmt: skip
    if other is not None:
        return Problem(
            "TARGET_REFUSES", topic,
            f"'{target}' on {flow.target} is already written from '{other.topic}' "
            f"by link '{other.flow.link}'",
            "Exclude one of the two topics, or give the links different namings.",
        )  # fmt: skip
    return None
