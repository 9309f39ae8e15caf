"""Level 1: every file of ci/ renders, for install and upgrade, the same each time."""

import yaml
from chart_engine import CHART, ci_values, lint, render, render_file

# Kubernetes appends to these: a revision's hash, or the time of a run.
LONGEST = {"StatefulSet": 52, "CronJob": 52}


def test_it_lints_without_a_warning(rendered):
    assert lint(rendered.values) == []


def test_install_and_upgrade_give_the_same_objects_each_time(rendered):
    again = render(rendered.values)
    assert again.texts == rendered.texts
    upgraded = render(rendered.values, upgrade=True)
    assert upgraded.objects == rendered.objects


def test_no_file_holds_an_empty_document(rendered):
    for path, text in rendered.texts.items():
        if path.endswith(".yaml") and text.strip():
            documents = list(yaml.safe_load_all(text))
            assert all(documents), f"{path}: {text}"


def test_names_are_unique_and_short_enough(rendered):
    seen = [(each["kind"], each["metadata"]["name"]) for each in rendered.objects]
    assert len(seen) == len(set(seen))
    for kind, name in seen:
        assert len(name) <= LONGEST.get(kind, 63), name


def test_a_long_release_name_still_gives_names_that_fit():
    values = {**ci_values("spark"), "fullnameOverride": "a" * 60}
    for job in values["spark"]["jobs"]:
        job["name"] = f"{job['name']}-{'b' * 24}"[:24]
    values["drills"] = [{**values["drills"][0], "name": letter * 24} for letter in "cd"]
    objects = render(values).objects
    seen = [(each["kind"], each["metadata"]["name"]) for each in objects]
    assert len(seen) == len(set(seen)), "cut names still differ"
    for kind, name in seen:
        assert len(name) <= LONGEST.get(kind, 63), name


def test_all_files_together_render_every_template():
    rendered = [render_file(name) for name in ("all-on", "ha", "keda", "locked-down", "spark")]
    templates = {
        str(path.relative_to(CHART))
        for path in (CHART / "templates").rglob("*.yaml")
    }  # fmt: skip
    made = {path for each in rendered for path, text in each.texts.items() if text.strip()}
    assert templates <= made


def test_objects_of_your_own_are_rendered_as_templates():
    extra = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-x"}}
    objects = render({**ci_values("minimal"), "extraObjects": [extra]}).objects
    assert "rel-x" in {each["metadata"]["name"] for each in objects}


def test_the_notes_show_what_is_there_and_what_to_do_next(rendered):
    notes = rendered.notes
    for needed in (
        "helm test rel",
        "replicator status",
        "replicator switchover",
        "replicator failover",
    ):
        assert needed in notes
    sets = rendered.kind("StatefulSet")
    assert all(each["metadata"]["name"] in notes for each in sets)
    single = [each for each in sets if each["spec"].get("replicas") == 1]
    assert not single or "WARNING" in notes
    assert max(len(line) for line in notes.splitlines()) <= 110
