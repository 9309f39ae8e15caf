"""What wanted topics ask of a round of the controller, worked out anew only where something changed.

A round goes through hundreds of topics several times; most rounds see what the one before saw.
"""

from collections.abc import Mapping

from replicator.control.reconcile.initial_backfill import may_begin_with_backfill
from replicator.control.reconcile.topic_selection import SelectedTopic
from replicator.control.store.state import ControlState


class SelectionCache:
    """Holds as long as what it rests on is the same objects.

    Attributes:
        topics: names at the source.
        copies: names at the target, of those that are there.
        new: those that are not copied yet, or whose copy is missing.
        in_bulk: those whose history may be copied first.
        unrecorded: whether the control topic knows nothing of one of them.
    """

    def __init__(
        self,
        wanted: tuple[SelectedTopic, ...],
        control: ControlState,
        target_sizes: Mapping[str, int],
    ) -> None:
        self._rests_on = (wanted, control.orders, target_sizes)
        held = [control.topic(one.flow.source, one.flow.link, one.topic) for one in wanted]
        self.topics = frozenset(one.topic for one in wanted)
        self.copies = frozenset(one.target for one in wanted) & target_sizes.keys()
        self.new = tuple(
            one for one, record in zip(wanted, held, strict=True)
            if record is None or record.state != "active" or one.target not in target_sizes
        )  # fmt: skip
        self.in_bulk = tuple(one for one in wanted if may_begin_with_backfill(one, control))
        self.unrecorded = None in held

    def rests_on(
        self,
        wanted: tuple[SelectedTopic, ...],
        control: ControlState,
        target_sizes: Mapping[str, int],
    ) -> bool:
        """Whether it still holds."""
        before = self._rests_on
        return before[0] is wanted and before[1] is control.orders and before[2] is target_sizes
