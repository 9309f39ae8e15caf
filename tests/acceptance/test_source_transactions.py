"""Writers that use transactions: what they took back never arrives anywhere."""

import pytest

MANY = 2_000


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_aborted_records_never_arrive_and_lag_still_reaches_zero(east, west, scene, delivery):
    scene.active_passive(east, west, delivery=delivery)
    scene.guarantee = delivery
    scene.worker()
    scene.writer(east, transactional=True, abort_ratio=0.3)
    scene.written(MANY)
    scene.settled()  # it also waits until status says that nothing lags
