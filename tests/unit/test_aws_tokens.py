"""Tokens for MSK by AWS's own signer, held against AWS's published example of a signed request."""

import base64
import hashlib
import hmac
import sys
import time
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from replicator.errors import AuthenticationFailedError, InputError
from replicator.logins.fetch_token import fetch_token
from replicator.topology.plan import ClusterPlan, SecurityPlan

# "Authenticating Requests: Using Query Parameters" of the Amazon S3 API reference.
EXAMPLE_KEY = "AKIAIOSFODNN7EXAMPLE"
EXAMPLE_SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
EXAMPLE_URL = (
    "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
    "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
    "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
    "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
)

MSK = ClusterPlan(
    "msk",
    ("b-1.shop.abc.c2.kafka.eu-west-1.amazonaws.com:9098",),
    SecurityPlan("SASL_SSL", "AWS_MSK_IAM", aws_region="eu-west-1"),
)


def signature(url: str, secret: str, *, payload: str) -> str:
    """Signature Version 4 of a GET whose signature stands in its query, from the specification."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    _, day, region, service, _ = query["X-Amz-Credential"].split("/")
    signed = sorted((name, value) for name, value in query.items() if name in SIGNED)
    canonical = "&".join(f"{quote(n, safe='-_.~')}={quote(v, safe='-_.~')}" for n, v in signed)
    request = "\n".join(
        ("GET", parts.path or "/", canonical, f"host:{parts.hostname}", "", "host", payload)
    )
    scope = f"{day}/{region}/{service}/aws4_request"
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join(("AWS4-HMAC-SHA256", query["X-Amz-Date"], scope, digest))
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


SIGNED = {
    "Action", "X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires",
    "X-Amz-Security-Token", "X-Amz-SignedHeaders",
}  # fmt: skip
EMPTY = hashlib.sha256(b"").hexdigest()


def test_our_check_gives_the_signature_that_aws_publishes():
    assert signature(EXAMPLE_URL, EXAMPLE_SECRET, payload="UNSIGNED-PAYLOAD") in EXAMPLE_URL


@pytest.mark.parametrize("session", ["", "session/of+tests=="])
def test_a_token_is_a_signed_request_to_connect_in_the_clusters_region(monkeypatch, session):
    pytest.importorskip("aws_msk_iam_sasl_signer")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", EXAMPLE_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", EXAMPLE_SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", session)
    token = fetch_token(MSK)
    padding = "=" * (-len(token.value) % 4)
    url = base64.urlsafe_b64decode(token.value + padding).decode()
    query = dict(parse_qsl(urlsplit(url).query))
    assert urlsplit(url).hostname == "kafka.eu-west-1.amazonaws.com"
    assert query["Action"] == "kafka-cluster:Connect"
    assert query.get("X-Amz-Security-Token", "") == session
    assert "/eu-west-1/kafka-cluster/aws4_request" in query["X-Amz-Credential"]
    assert query["X-Amz-Signature"] == signature(url, EXAMPLE_SECRET, payload=EMPTY)
    assert 800 < token.ends_at - time.time() <= 900


def test_without_credentials_it_is_said_what_the_worker_needs(monkeypatch, tmp_path):
    pytest.importorskip("aws_msk_iam_sasl_signer")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(AuthenticationFailedError, match="credential chain") as raised:
        fetch_token(MSK)
    assert "role" in raised.value.remedy


def test_without_the_package_it_is_said_which_extra_has_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(InputError, match="aws-msk-iam-sasl-signer-python") as raised:
        fetch_token(MSK)
    assert "replicator[aws]" in raised.value.remedy
