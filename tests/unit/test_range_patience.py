"""How long a range stands still before its task fails, and what it says then."""

import pytest

from replicator.dataplane.ranges.range_patience import Patience, RangePatience, Reason
from replicator.errors import NotAuthorizedError, NotFoundError, UnreachableError

PATIENCE = Patience(seconds=60.0, refused_seconds=10.0)
RIGHT = Reason("NOT_AUTHORIZED", "cluster east: cannot read t/0", "Allow READ by an ACL.")
GONE = Reason("NOT_FOUND", "cluster west: 't' does not exist", "Create it again.")
IN_SYNC = Reason("UNREACHABLE", "cluster west: 1 of its replicas are in sync", "Bring them back.")


def looked(
    states,
    *,
    patience=Patience(seconds=60.0, refused_seconds=10.0),  # noqa: B008
):
    """The second at which it failed, and how; each state is what is seen for so many seconds.

    States: seconds, position, reasons, whether the lane works.
    """
    held, now = RangePatience("t/0", PATIENCE, now=0.0), 0.0
    for seconds, position, reasons, works in states:
        for _ in range(seconds * 5):
            now += 0.2
            try:
                held.look(now, position, reasons, works=works, otherwise="recovering")
            except (NotAuthorizedError, NotFoundError, UnreachableError) as error:
                return round(now), error
    return None


@pytest.mark.parametrize(("reason", "kind"), [(RIGHT, NotAuthorizedError), (GONE, NotFoundError)])
def test_what_waiting_does_not_cure_is_reported_soon(reason, kind):
    at, error = looked([(30, 0, [reason], False)])
    assert at == 10
    assert type(error) is kind
    assert error.paragraph() == f"t/0: {reason.detail}. {reason.remedy}"


def test_what_may_pass_is_waited_for_and_then_reported_with_its_reason():
    at, error = looked([(90, 0, [IN_SYNC], False)])
    assert at == 60
    assert error.code == "UNREACHABLE"
    assert "too long; cluster west: 1 of its replicas are in sync. Bring them back." in (
        error.paragraph()
    )


def test_without_a_reason_the_state_of_the_lane_is_reported():
    at, error = looked([(90, 0, [], False)])
    assert at == 60
    assert "recovering. Check that its brokers run, then run it again" in error.paragraph()


def test_a_lane_that_starts_again_between_two_refusals_has_not_recovered():
    again = [(2, 0, [RIGHT], False), (3, 0, [], True)]
    at, error = looked(again * 10)
    assert 10 <= at <= 13
    assert isinstance(error, NotAuthorizedError)


def test_a_refusal_is_reported_also_where_something_else_is_wrong():
    _, error = looked([(30, 0, [IN_SYNC, RIGHT], False)])
    assert isinstance(error, NotAuthorizedError)


def test_progress_and_work_end_the_waiting():
    assert looked([(8, n, [RIGHT], False) for n in range(20)]) is None
    assert looked([(50, 0, [IN_SYNC], False), (20, 0, [], True)] * 3) is None
    assert looked([(600, 0, [], True)]) is None
