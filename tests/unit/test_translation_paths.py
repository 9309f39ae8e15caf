"""Which copies connect two topics, for every naming and shape."""

import pytest
import topology_files

from replicator.offsets.index.paths import reversed_path, translation_paths


def plan_of(names, *links):
    return topology_files.plan_of(*links, clusters=names, name="retail")


def link(shape, **fields):
    return {"name": "l", "shape": shape, "topics": {"include": ["orders"]}, **fields}


def ways(plan, source, target, topic):
    return {
        way.target_topic: sorted(
            (part.origin, part.back and part.back.flow, part.onward and part.onward.flow)
            for part in way.components
        )
        for way in translation_paths(plan, source, target, topic, 0)
    }


def test_active_passive_is_one_line_and_its_other_direction_is_assumed():
    plan = plan_of(["east", "west"], link("active-passive", active="east", passive="west"))
    assert ways(plan, "east", "west", "orders") == {
        "orders": [("east", None, "east->west"), ("west", "west->east", None)]
    }
    (way,) = translation_paths(plan, "east", "west", "orders", 0)
    assert [line.assumed for line in way.replicated] == [False, True]
    assert way.links == {"l"}
    assert ways(plan, "east", "west", "other") == {}


@pytest.mark.parametrize("naming", ["identity", "prefix"])
def test_active_active_connects_both_directions(naming):
    plan = plan_of(
        ["east", "west"], link("active-active", clusters=["east", "west"], naming=naming)
    )
    if naming == "identity":
        assert ways(plan, "east", "west", "orders") == {
            "orders": [("east", None, "east->west"), ("west", "west->east", None)]
        }
    else:
        assert ways(plan, "east", "west", "orders") == {
            "east.orders": [("east", None, "east->west")]
        }
        assert ways(plan, "east", "west", "west.orders") == {
            "orders": [("west", "west->east", None)]
        }


def test_three_clusters_under_one_name_have_three_origins():
    names = ["central", "east", "west"]
    plan = plan_of(names, link("active-active", clusters=names, naming="identity"))
    assert ways(plan, "east", "west", "orders") == {
        "orders": [
            ("central", "central->east", "central->west"),
            ("east", None, "east->west"),
            ("west", "west->east", None),
        ]
    }


def test_the_way_back_leads_to_the_topic_it_came_from():
    plan = plan_of(
        ["east", "west"], link("active-active", clusters=["east", "west"], naming="prefix")
    )
    (way,) = translation_paths(plan, "east", "west", "orders", 3)
    back = reversed_path(plan, way)
    assert (back.topic, back.target_topic, back.partition) == ("east.orders", "orders", 3)
