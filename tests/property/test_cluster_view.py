"""A view that was fed with differences is the view of a cluster read anew, and knows what changed."""

from hypothesis import given
from hypothesis import strategies as st

from replicator.control.reconcile.cluster_view import KEPT_CHANGES, ClusterView, TopicFacts

NAMES = ("orders", "payments", "stock", "audit")
clusters = st.dictionaries(
    st.sampled_from(NAMES),
    st.builds(TopicFacts, st.sampled_from(["a", "b"]), st.integers(1, 4), st.integers(1, 3)),
)


def looked(view: ClusterView, cluster: dict[str, TopicFacts]) -> ClusterView:
    return view.listed({name: facts.partitions for name, facts in cluster.items()})


@given(st.lists(st.tuples(clusters, st.booleans()), min_size=1, max_size=8))
def test_a_view_fed_with_differences_equals_one_read_from_scratch(clusters_seen):
    view = ClusterView()
    for cluster, all_described in clusters_seen:
        view = looked(view, cluster)
        held = view.topics
        differing = {name: facts for name, facts in cluster.items() if held.get(name) != facts}
        view = view.described(dict(cluster) if all_described else differing)
        fresh = looked(ClusterView(), cluster).described(cluster)
        assert (view.sizes, view.topics) == (fresh.sizes, fresh.topics)


@given(st.lists(clusters, min_size=2, max_size=8), st.data())
def test_a_view_names_every_topic_that_changed_since_an_earlier_one(clusters_seen, data):
    views = [ClusterView()]
    for cluster in clusters_seen:
        views.append(looked(views[-1], cluster))
        views.append(views[-1].described(cluster))
    earlier = data.draw(st.sampled_from(views))
    last = views[-1]
    changed = {
        name
        for name in NAMES
        if earlier.sizes.get(name) != last.sizes.get(name)
        or earlier.topics.get(name) != last.topics.get(name)
    }
    assert changed <= last.changed_since(earlier.version)
    assert last.changed_since(last.version) == frozenset()


def test_a_look_that_shows_nothing_new_gives_the_same_view():
    cluster = {"orders": TopicFacts("a", 2, 1)}
    view = looked(ClusterView(), cluster).described(cluster)
    assert looked(view, cluster) is view
    assert view.described(dict(cluster)) is view
    assert view.described({"unknown": None}) is view


def test_a_version_too_long_ago_is_unknown():
    view = ClusterView()
    for size in range(KEPT_CHANGES + 2):
        view = view.listed({"orders": size + 1})
    assert view.changed_since(1) is None
    assert view.changed_since(view.version - KEPT_CHANGES) == {"orders"}
