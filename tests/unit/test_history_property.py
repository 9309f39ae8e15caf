"""Whatever the shape and the luck, a clean history is clean, and a single theft is noticed."""

from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_history import NAMINGS, clean_history

from replicator.testing.checker.check import check
from replicator.testing.checker.history import Completed, Seen, decode, encode

histories = st.builds(
    dict,
    shape=st.sampled_from(sorted(NAMINGS)),
    records=st.integers(0, 150),
    partitions=st.integers(1, 8),
    seed=st.integers(0, 2**32),
    header=st.booleans(),
    transactional=st.booleans(),
)


@settings(max_examples=60)
@given(histories)
def test_clean_is_clean(options):
    report = check(clean_history(**options), naming=NAMINGS[options["shape"]])
    assert report.clean, report.paragraph()
    assert report.findings == ()


@settings(max_examples=60)
@given(histories, st.data())
def test_any_acknowledged_copy_that_is_taken_away_is_missed(options, data):
    history = clean_history(**options)
    outcomes = {e.id: e for e in history if isinstance(e, Completed) and e.offset is not None}
    copies = [
        e
        for e in history
        if isinstance(e, Seen) and e.id in outcomes and not e.id.startswith(e.cluster)
    ]
    if not copies:
        return
    taken = data.draw(st.sampled_from(copies))
    names = check((e for e in history if e is not taken), naming=NAMINGS[options["shape"]]).names()
    assert names in (("lost",), ("unseen tail",))


@settings(max_examples=30)
@given(histories)
def test_events_survive_the_file_format(options):
    for event in clean_history(**options):
        assert decode(encode(event)) == event
