"""The OpenAPI document against the running server: every answer is one it declares."""

import json

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode, checks

OPERATIONS = [
    ("GET", "/livez"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/api/v1/status"),
    ("GET", "/api/v1/topology"),
    ("GET", "/api/v1/history"),
    ("GET", "/api/v1/groups"),
    ("POST", "/api/v1/pause"),
    ("POST", "/api/v1/resume"),
]
CHANGES = [each for each in OPERATIONS if each[0] == "POST"]
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]


# Headers are generated too, and a host of another name is refused like any other wrong request.
CONFIG = schemathesis.Config.from_dict(
    {
        "checks": {
            "negative_data_rejection": {
                "expected-statuses": [400, 401, 403, 404, 409, 411, 413, 415, 421, 422, 503]
            }
        }
    }
)


def operation(url, method, path):
    document = httpx.get(f"{url}/openapi.json").json()
    return schemathesis.openapi.from_dict(document, config=CONFIG)[path][method]


def send_all(strategy, *, url, headers, extra_checks=()):
    @settings(
        max_examples=40,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def send(case):
        case.call_and_validate(base_url=url, headers=headers, checks=[*CHECKS, *extra_checks])

    send()


def test_the_document_lists_exactly_the_contract(reader_url):
    document = httpx.get(f"{reader_url}/openapi.json").json()
    listed = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    assert listed == set(OPERATIONS)
    for _, path in CHANGES:
        assert document["paths"][path]["post"]["security"] == [{"token": []}]
    assert "http://" not in json.dumps(document)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_requests_by_the_document_get_answers_by_the_document(
    operator_url, operator_headers, method, path
):
    wanted = operation(operator_url, method, path)
    send_all(wanted.as_strategy(), url=operator_url, headers=operator_headers)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_that_another_host_is_asked_for_is_an_answer_of_the_document(
    operator_url, operator_headers, method, path
):
    headers = {**operator_headers, "host": "elsewhere"}
    answer = httpx.request(method, f"{operator_url}{path}", headers=headers)
    document = httpx.get(f"{operator_url}/openapi.json").json()
    assert answer.status_code == 421
    assert "421" in document["paths"][path][method.lower()]["responses"]


@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_bodies_against_the_document_are_refused(
    operator_url, operator_headers, worker, method, path
):
    wanted = operation(operator_url, method, path)
    send_all(
        wanted.as_strategy(GenerationMode.NEGATIVE),
        url=operator_url,
        headers=operator_headers,
        extra_checks=[checks.negative_data_rejection],
    )


@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_without_the_token_no_generated_request_changes_anything(
    operator_url, worker, method, path
):
    wanted = operation(operator_url, method, path)
    send_all(wanted.as_strategy(), url=operator_url, headers={})
    assert worker.changes == []
