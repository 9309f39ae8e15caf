"""Alerts: each fires when it should and stays silent when it should, and tells what to do."""

import functools
import re
from pathlib import Path

import promql_parser
import pytest
import yaml
from catalogue_names import problem_codes, unknown_metrics
from chart_engine import ROOT, ci_values, render, render_file
from promtool import promtool

RULES = ROOT / "deploy" / "prometheus" / "alerts.yaml"
CASES = yaml.safe_load((Path(__file__).parent / "alert_cases.yaml").read_text())
KINDS = ("fires", "fires too", "silent")
LABELS = {
    "namespace": "streams", "job": "streams/rel", "pod": "w-0", "topology": "shop",
    "link": "orders-dr", "flow": "east->west",
}  # fmt: skip


@functools.cache
def alerts():
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def test_rules_are_what_prometheus_takes(tmp_path):
    (tmp_path / "alerts.yaml").write_text(RULES.read_text())
    assert f"{len(alerts())} rules found" in promtool(
        "check", "rules", "alerts.yaml", directory=tmp_path
    )


def test_the_chart_ships_the_same_alerts():
    rule = next(iter(render_file("ha").kind("PrometheusRule")))
    shipped = {r["alert"]: r for group in rule["spec"]["groups"] for r in group["rules"]}
    assert shipped.keys() == alerts().keys()
    selector = 'namespace="streams",pod=~"rel-replicator-(east|west)-[0-9]+"'
    for name, alert in alerts().items():
        expression = shipped[name]["expr"]
        assert expression.count(selector) == expression.count("replicator_"), "every metric"
        narrowed = expression.replace(f"{{{selector}}}", "").replace(f"{selector},", "")
        assert {**shipped[name], "expr": narrowed, "labels": {}} == {**alert, "labels": {}}
        assert shipped[name]["labels"] == {**alert["labels"], "team": "streaming", "release": "rel"}


def of_release(release, **rule):
    """The rules of one release of the smallest values, by name."""
    values = ci_values("minimal")
    values["monitoring"] = {"prometheusRule": {"enabled": True, **rule}}
    (found,) = render(values, release=release).kind("PrometheusRule")
    return {r["alert"]: r for group in found["spec"]["groups"] for r in group["rules"]}


def test_rules_of_a_release_are_about_its_own_workers_with_its_own_thresholds(tmp_path):
    """One of two releases has gone, and lags; the other is well. Both have the same topology's names."""
    groups = []
    for release, lag_seconds in (("a-replicator", 10), ("b-replicator", 500)):
        rules = of_release(release, thresholds={"lagSeconds": lag_seconds})
        chosen = [rules[name] for name in ("ReplicatorDown", "ReplicatorLagFastBurn")]
        groups.append({"name": release, "rules": chosen})
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))

    def series(metric, pod):
        return f"replicator_{metric}{_matchers({**LABELS, 'pod': pod})}"

    def firing(name, release, labels):
        told = {"alertname": name, "alertstate": "firing", "release": release,
                "severity": "critical", **labels}  # fmt: skip
        return {"labels": f"ALERTS{_matchers(told)}", "value": 1}

    flow = {label: LABELS[label] for label in ("namespace", "topology", "link", "flow")}
    document = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "30s",
        "tests": [
            {
                "interval": "30s",
                "input_series": [
                    {"series": series("build_info", "b-replicator-all-0"), "values": "1+0x100"},
                    {"series": series("lag_seconds", "b-replicator-all-0"), "values": "100+0x100"},
                    {"series": series("lag_seconds", "a-replicator-all-0"), "values": "100+0x100"},
                ],
                "promql_expr_test": [
                    {
                        "expr": 'ALERTS{alertstate="firing"}',
                        "eval_time": "40m",
                        "exp_samples": [
                            firing("ReplicatorDown", "a-replicator", {"namespace": "streams"}),
                            firing("ReplicatorLagFastBurn", "a-replicator", flow),
                        ],
                    }
                ],
            }
        ],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(document))
    promtool("test", "rules", "test.yaml", directory=tmp_path)


def test_a_scrape_of_ones_own_may_name_the_series_of_the_release():
    rules = of_release("a-replicator", selector='cluster="frankfurt"')
    assert rules["ReplicatorDown"]["expr"] == 'absent(replicator_build_info{cluster="frankfurt"})'


def test_thresholds_runbooks_and_silence_follow_the_values():
    values = ci_values("minimal")
    values["monitoring"] = {
        "prometheusRule": {
            "enabled": True, "runbookBaseUrl": "https://wiki/r/", "disabled": ["ReplicatorDown"],
            "thresholds": {"lagSeconds": 777},
        }
    }  # fmt: skip
    (rule,) = render(values).kind("PrometheusRule")
    shipped = {r["alert"]: r for group in rule["spec"]["groups"] for r in group["rules"]}
    assert shipped.keys() == alerts().keys() - {"ReplicatorDown"}
    assert "> bool 777)" in shipped["ReplicatorLagFastBurn"]["expr"]
    assert shipped["ReplicatorLagFastBurn"]["annotations"]["runbook_url"] == (
        "https://wiki/r/ReplicatorLagFastBurn.md"
    )


@pytest.mark.parametrize("name", sorted(alerts()))
def test_an_alert_says_how_bad_it_is_what_is_the_matter_and_what_to_do(name):
    alert = alerts()[name]
    assert alert["labels"]["severity"] in {"critical", "warning"}
    assert alert["for"]
    told = alert["annotations"]
    assert told.keys() == {"summary", "description", "runbook_url"}
    assert "<" not in re.sub(r"\{\{.*?\}\}", "", told["summary"] + told["description"])
    assert told["runbook_url"] == f"docs/runbooks/{name}.md"
    assert (ROOT / told["runbook_url"]).exists()


@pytest.mark.parametrize("name", sorted(alerts()))
def test_an_alert_asks_only_for_metrics_labels_and_codes_that_there_are(name):
    expression = alerts()[name]["expr"]
    promql_parser.parse(expression)
    assert unknown_metrics(expression) == []
    for codes in re.findall(r'code=~?"([A-Z_|]+)"', expression):
        assert set(codes.split("|")) <= problem_codes()


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_is_silent():
    assert CASES.keys() == alerts().keys()
    for name, case in CASES.items():
        assert {"at", "fires", "silent"} <= case.keys() <= {"at", *KINDS}, name


def test_alerts_fire_and_stay_silent(tmp_path):
    for name, case in CASES.items():
        # Each with its rule alone: evaluating all of them for every case takes a minute.
        group = {"name": "one", "rules": [alerts()[name]]}
        (tmp_path / f"{name}.rule.yaml").write_text(yaml.safe_dump({"groups": [group]}))
        document = {
            "rule_files": [f"{name}.rule.yaml"],
            "evaluation_interval": "30s",
            "tests": [_test(name, case, kind) for kind in KINDS if kind in case],
        }
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(document))
    promtool("test", "rules", *(f"{name}.yaml" for name in CASES), directory=tmp_path)


def _test(name: str, case: dict, kind: str) -> dict:
    return {
        "interval": "30s",
        "name": f"{name} {kind}",
        "input_series": [
            {"series": _series(written), "values": _values(values)}
            for written, values in case[kind].items()
        ],
        "promql_expr_test": [
            {
                "expr": f'ALERTS{{alertname="{name}",alertstate="firing"}}',
                "eval_time": case["at"],
                "exp_samples": [] if kind == "silent" else [_firing(name)],
            }
        ],
    }


def _series(written: str) -> str:
    name, _, more = written.partition("|")
    added = dict(re.findall(r'(\w+)="([^"]*)"', more))
    labels = {**LABELS, **added}
    return f"replicator_{name}{_matchers(labels)}"


def _matchers(labels: dict[str, str]) -> str:
    return "{" + ",".join(f'{label}="{value}"' for label, value in labels.items()) + "}"


def _values(values: object) -> str:
    return values if isinstance(values, str) else f"{values}+0x200"


def _firing(name: str) -> dict[str, object]:
    """The sample of a firing alert; which labels it has follows from what it sums up by."""
    alert = alerts()[name]
    by = re.search(r"(?:max|sum|min|count) by \(([a-z, ]+)\)", alert["expr"])
    kept = [each.strip() for each in by[1].split(",")] if by else []
    labels = {label: LABELS[label] for label in kept if label in LABELS}
    labels |= {
        label: value
        for written in CASES[name]["fires"]
        for label, value in re.findall(r'(\w+)="([^"]*)"', written)
        if label in kept and label not in LABELS and label != "le"
    }
    labels |= {"alertname": name, "alertstate": "firing", "severity": alert["labels"]["severity"]}
    return {"labels": f"ALERTS{_matchers(labels)}", "value": 1}
