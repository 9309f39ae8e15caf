"""A topology file may hold anything; loading it never fails with anything but problems."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from replicator.topology.file.load import load_text

EXAMPLE = (Path(__file__).parents[2] / "topologies" / "three-regions.yaml").read_text()
LINES = EXAMPLE.splitlines()


def judged(text):
    result = load_text(text)
    assert (result.plan is None) == bool(result.errors)
    for problem in result.problems:
        assert problem.line >= 1
        assert problem.column >= 1
        assert problem.message
        assert problem.remedy
    return result


@given(st.text(max_size=200))
def test_any_text_is_a_plan_or_has_problems(text):
    judged(text)


@given(st.text(alphabet="ab:- \n\t[]{}*&!|>#'\"?,%@", max_size=80))
def test_anything_like_yaml_is_a_plan_or_has_problems(text):
    judged(text)


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, len(LINES) - 1), max_size=4),
    st.sampled_from(["", "  x: 1", "null", "    - a", "  kafka: []", "spec: 5", "links:", "- - -"]),
)
def test_a_mangled_example_is_a_plan_or_has_problems(places, replacement):
    lines = [replacement if at in places else line for at, line in enumerate(LINES)]
    judged("\n".join(lines))


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(alphabet="ab*", max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=150)
@given(
    st.sampled_from(
        [
            "metadata",
            "spec",
            "clusters",
            "defaults",
            "links",
            "security",
            "topics",
            "naming",
            "sync",
            "filters",
            "throttle",
            "startFrom",
            "kafka",
            "username",
            "password",
            "clusters",
        ]
    ),
    JSON,
)
def test_any_value_in_any_field_is_a_plan_or_has_problems(field, value):
    import json

    data = {
        "apiVersion": "replicator/v1",
        "kind": "Topology",
        "metadata": {"name": "x"},
        "spec": {
            "clusters": {
                "a": {
                    "bootstrapServers": ["a:1"],
                    "kafka": {},
                    "security": {"protocol": "PLAINTEXT", "username": None, "password": None},
                },
                "b": {"bootstrapServers": ["b:1"]},
            },
            "defaults": {},
            "links": [
                {
                    "name": "l",
                    "shape": "active-active",
                    "clusters": ["a", "b"],
                    "topics": {"include": ["t"]},
                    **dict.fromkeys(["naming", "sync", "filters", "throttle", "startFrom"]),
                }
            ],
        },
    }

    def planted(node):
        if isinstance(node, dict):
            return {key: value if key == field else planted(item) for key, item in node.items()}
        return [planted(item) for item in node] if isinstance(node, list) else node

    judged(json.dumps(planted(data)))
