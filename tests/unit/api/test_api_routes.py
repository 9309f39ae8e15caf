import json

import httpx
import pytest

from replicator.api.routes.provider import PauseTarget
from replicator.errors import RefusedError, UnreachableError
from replicator.observability.health import HealthVerdict

READS = ["/metrics", "/api/v1/status", "/api/v1/topology", "/api/v1/history", "/openapi.json"]


@pytest.mark.parametrize("path", [*READS, "/livez", "/readyz", "/"])
def test_reading_on_loopback_needs_no_token(reader_url, path):
    assert httpx.get(reader_url + path).status_code == 200


def test_probes_say_why_not(reader_url, worker):
    worker.live_verdict = HealthVerdict(False, ("loop 'discovery' is silent",))
    worker.ready_verdict = HealthVerdict(False, ("cluster 'east' cannot be reached",))
    alive = httpx.get(f"{reader_url}/livez")
    ready = httpx.get(f"{reader_url}/readyz")
    assert (alive.status_code, ready.status_code) == (503, 503)
    assert alive.json() == {"ok": False, "reasons": ["loop 'discovery' is silent"]}
    assert ready.json()["reasons"] == ["cluster 'east' cannot be reached"]


def test_status_is_what_the_worker_says(reader_url):
    answer = httpx.get(f"{reader_url}/api/v1/status")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["topology"] == "retail"


def test_metrics_are_in_the_text_format_of_prometheus(reader_url):
    answer = httpx.get(f"{reader_url}/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert answer.text.startswith("# TYPE replicator_")


def test_a_secret_that_reached_the_topology_is_not_sent(reader_url):
    assert "leaked" not in httpx.get(f"{reader_url}/api/v1/topology").text


def test_changes_are_off_without_a_token(reader_url, worker, operator_headers):
    answer = httpx.post(
        f"{reader_url}/api/v1/pause", json={"flow": "east->west"}, headers=operator_headers
    )
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "OFF"
    assert worker.changes == []


def test_changes_need_the_token(operator_url, worker):
    body = {"flow": "east->west"}
    none = httpx.post(f"{operator_url}/api/v1/pause", json=body)
    wrong = httpx.post(
        f"{operator_url}/api/v1/pause", json=body, headers={"Authorization": "Bearer nope"}
    )
    assert none.status_code == 401
    assert none.headers["www-authenticate"].startswith("Bearer")
    assert wrong.status_code == 403
    assert worker.changes == []


def test_pause_and_resume_reach_the_worker(operator_url, worker, operator_headers):
    paused = httpx.post(
        f"{operator_url}/api/v1/pause",
        json={"flow": "east->west", "topic": "orders", "partition": 1},
        headers=operator_headers,
    )
    resumed = httpx.post(
        f"{operator_url}/api/v1/resume",
        json={"flow": "east->west", "topic": "orders", "partition": 1, "acceptGap": True},
        headers=operator_headers,
    )
    assert paused.json() == {"paused": "east->west"}
    assert resumed.json() == {"resumed": "east->west"}
    target = PauseTarget("east->west", "orders", 1)
    assert worker.changes == [("pause", target), ("resume", target, True)]


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ("", 422, "body"),
        ("{", 422, "JSON"),
        ("[]", 422, "dictionary"),
        ('{"flow": "east"}', 422, "flow"),
        ('{"flow": "east->west", "extra": 1}', 422, "extra"),
        ('{"flow": "east->west", "partition": 1}', 422, "topic"),
        ('{"flow": "east->west", "topic": "orders", "partition": "1"}', 422, "partition"),
        ('{"flow": "east->west", "topic": "orders", "partition": -1}', 422, "partition"),
        ('{"flow": "north->west"}', 404, "no such flow"),
    ],
)
def test_a_wrong_body_is_told_what_is_wrong(operator_url, operator_headers, body, status, says):
    answer = httpx.post(
        f"{operator_url}/api/v1/pause",
        content=body,
        headers={**operator_headers, "Content-Type": "application/json"},
    )
    assert answer.status_code == status
    assert says in json.dumps(answer.json()["error"])


def test_a_change_that_is_not_json_is_refused(operator_url, operator_headers):
    form = httpx.post(
        f"{operator_url}/api/v1/pause", data={"flow": "east->west"}, headers=operator_headers
    )
    assert form.status_code == 415


def test_a_body_of_unknown_length_is_refused(operator_url, operator_headers):
    answer = httpx.post(
        f"{operator_url}/api/v1/pause",
        content=iter([b'{"flow": "east->west"}']),
        headers={**operator_headers, "Content-Type": "application/json"},
    )
    assert answer.status_code == 411


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (UnreachableError("no broker answers", subject="cluster:east"), 503, "UNREACHABLE"),
        (RefusedError("not now"), 409, "REFUSED"),
        (RuntimeError("internal detail"), 500, "FAILED"),
    ],
)
def test_a_failure_becomes_an_answer_without_internals(reader_url, worker, failure, status, code):
    worker.failure = failure
    answer = httpx.get(f"{reader_url}/api/v1/status")
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == code
    assert "internal detail" not in answer.text
    assert "Traceback" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_off_loopback_reading_needs_the_token_and_probes_do_not(clusterwide_url, operator_headers):
    for path in READS:
        assert httpx.get(clusterwide_url + path).status_code == 401
        assert httpx.get(clusterwide_url + path, headers=operator_headers).status_code == 200
    assert httpx.get(f"{clusterwide_url}/livez").status_code == 200
    assert httpx.get(f"{clusterwide_url}/").status_code == 200


@pytest.mark.parametrize("path", ["/", "/api/v1/status", "/nothing", "/livez"])
def test_every_answer_carries_the_security_headers(reader_url, path):
    headers = httpx.get(reader_url + path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers


def test_other_sites_get_nothing(reader_url):
    cross = httpx.options(
        f"{reader_url}/api/v1/status",
        headers={"Origin": "https://attacker.example", "Access-Control-Request-Method": "GET"},
    )
    assert "access-control-allow-origin" not in cross.headers
    rebound = httpx.get(f"{reader_url}/api/v1/status", headers={"Host": "attacker.example"})
    assert rebound.status_code == 421


def test_unknown_paths_and_methods_are_json_errors(reader_url):
    missing = httpx.get(f"{reader_url}/console/../secret")
    assert missing.status_code == 404
    assert missing.json()["error"]["code"] == "NOT_FOUND"
    assert httpx.options(f"{reader_url}/livez").status_code == 405
    for docs in ("/docs", "/redoc"):
        assert httpx.get(reader_url + docs).status_code == 404
