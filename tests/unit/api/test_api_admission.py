import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.api.access.admission import (
    MAX_BODY_BYTES,
    AccessPolicy,
    RequestFacts,
    access_policy,
    admit,
    is_loopback,
)

TOKEN = "correct-horse"
WITH_TOKEN = AccessPolicy(token=TOKEN, read_token_required=False, loopback_only=False)
CLUSTERWIDE = AccessPolicy(token=TOKEN, read_token_required=True, loopback_only=False)
CHANGE = RequestFacts(
    method="POST",
    path="/api/v1/pause",
    authorization=f"Bearer {TOKEN}",
    content_type="application/json",
    content_length="20",
)


@pytest.mark.parametrize(
    ("host", "token", "read_token_required", "loopback_only"),
    [
        ("127.0.0.1", None, False, True),
        ("localhost", TOKEN, False, True),
        ("::1", TOKEN, False, True),
        ("0.0.0.0", TOKEN, True, False),  # noqa: S104
        ("::", TOKEN, True, False),
        ("10.1.2.3", None, False, False),
        ("worker-0.local", TOKEN, True, False),
    ],
)
def test_policy_follows_from_where_it_listens(host, token, read_token_required, loopback_only):
    policy = access_policy(host=host, token=token)
    assert policy == AccessPolicy(token, read_token_required, loopback_only)
    assert is_loopback(host) == loopback_only


def test_a_change_with_the_right_token_and_body_is_admitted():
    assert admit(CHANGE, WITH_TOKEN) is None


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"authorization": None}, 401),
        ({"authorization": "Bearer wrong"}, 403),
        ({"authorization": f"Basic {TOKEN}"}, 403),
        ({"authorization": "Bearer"}, 403),
        ({"authorization": "Bearer correct-hörse"}, 403),
        ({"content_type": None}, 415),
        ({"content_type": "text/plain"}, 415),
        ({"content_type": "application/x-www-form-urlencoded"}, 415),
        ({"content_length": None}, 411),
        ({"content_length": "-1"}, 411),
        ({"content_length": "²"}, 411),
        ({"content_length": str(MAX_BODY_BYTES + 1)}, 413),
        ({"content_length": "9" * 5000}, 413),
    ],
)
def test_a_change_is_refused_for_the_first_thing_that_is_wrong(change, status):
    refusal = admit(dataclasses.replace(CHANGE, **change), WITH_TOKEN)
    assert refusal is not None
    assert refusal.status == status
    assert refusal.challenge == (status == 401)
    assert refusal.detail
    assert refusal.remedy


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "INVENTED"])
def test_without_a_token_nothing_can_be_changed(method):
    policy = access_policy(host="127.0.0.1", token=None)
    refusal = admit(dataclasses.replace(CHANGE, method=method), policy)
    assert refusal is not None
    assert (refusal.status, refusal.code) == (403, "OFF")


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/", "/console/console.js"])
def test_probes_and_the_empty_console_are_open_everywhere(path):
    assert admit(RequestFacts("GET", path), CLUSTERWIDE) is None


@pytest.mark.parametrize("path", ["/metrics", "/api/v1/status", "/openapi.json", "/nothing"])
def test_reading_off_loopback_needs_the_token(path):
    refused = admit(RequestFacts("GET", path), CLUSTERWIDE)
    assert refused is not None
    assert refused.status == 401
    given = RequestFacts("GET", path, authorization=f"bearer {TOKEN}")
    assert admit(given, CLUSTERWIDE) is None


@pytest.mark.parametrize(
    ("host", "let_in"),
    [
        ("127.0.0.1:8080", True),
        ("localhost", True),
        ("LOCALHOST:1", True),
        ("[::1]:8080", True),
        ("console.localhost:8080", True),
        (None, True),
        ("attacker.example:8080", False),
        ("127.0.0.1.attacker.example", False),
        ("", False),
    ],
)
def test_on_loopback_only_names_of_this_machine_are_answered(host, let_in):
    policy = access_policy(host="127.0.0.1", token=None)
    refusal = admit(RequestFacts("GET", "/api/v1/status", host=host), policy)
    assert (refusal is None) == let_in
    if refusal is not None:
        assert refusal.status == 421


ANY = st.none() | st.text()


@given(
    method=st.sampled_from(["POST", "PUT", "DELETE", "PATCH"]) | st.text(min_size=1),
    path=st.text(),
    authorization=ANY,
    content_type=ANY,
    content_length=ANY,
)
def test_no_request_without_the_token_changes_anything(
    method, path, authorization, content_type, content_length
):
    request = RequestFacts(method, path, None, authorization, content_type, content_length)
    if method in {"GET", "HEAD", "OPTIONS"} or TOKEN in (authorization or ""):
        return
    assert admit(request, WITH_TOKEN) is not None
    assert admit(request, CLUSTERWIDE) is not None
