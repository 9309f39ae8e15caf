"""Tokens for MSK by AWS's own signer, held against AWS's published example of a signed request."""

import base64
import hashlib
import hmac
import sys
import threading
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
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


def test_without_credentials_the_message_names_what_the_worker_needs(monkeypatch, tmp_path):
    pytest.importorskip("aws_msk_iam_sasl_signer")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(AuthenticationFailedError, match="credential chain") as raised:
        fetch_token(MSK)
    assert "role" in raised.value.remedy


class TokenService(BaseHTTPRequestHandler):
    """AWS's service of short-lived credentials, for roles that are taken on with a web identity."""

    asked: ClassVar[list[dict[str, str]]] = []
    known = "a-projected-service-account-token"

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        form = dict(parse_qsl(self.rfile.read(length).decode()))
        self.asked.append(form)
        if form["WebIdentityToken"] == self.known:
            ends = datetime.fromtimestamp(time.time() + 3600, UTC).isoformat()
            status, answer = 200, CREDENTIALS.format(ends=ends)
        else:
            status, answer = 400, REFUSED
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_):
        pass


NAMESPACE = "https://sts.amazonaws.com/doc/2011-06-15/"
CREDENTIALS = (
    f'<AssumeRoleWithWebIdentityResponse xmlns="{NAMESPACE}"><AssumeRoleWithWebIdentityResult>'
    f"<Credentials><AccessKeyId>{EXAMPLE_KEY}</AccessKeyId><SecretAccessKey>{EXAMPLE_SECRET}"
    "</SecretAccessKey><SessionToken>of-the-role</SessionToken><Expiration>{ends}</Expiration>"
    "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
)
REFUSED = (
    f'<ErrorResponse xmlns="{NAMESPACE}"><Error><Type>Sender</Type><Code>InvalidIdentityToken</Code>'
    "<Message>not a token of this provider</Message></Error></ErrorResponse>"
)


@pytest.fixture
def web_identity(monkeypatch, tmp_path):
    """What the webhook of EKS puts into a pod; the file with the token of its service account."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), TokenService)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "token"
    file.write_text(TokenService.known)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(file))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/replicator")
    monkeypatch.setenv("AWS_ROLE_SESSION_NAME", "replicator")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    TokenService.asked.clear()
    yield file
    server.shutdown()
    server.server_close()


def test_a_pod_with_a_web_identity_signs_as_its_role(web_identity):
    pytest.importorskip("aws_msk_iam_sasl_signer")
    token = fetch_token(MSK)
    (form,) = TokenService.asked
    assert form["RoleArn"] == "arn:aws:iam::123456789012:role/replicator"
    url = base64.urlsafe_b64decode(token.value + "=" * (-len(token.value) % 4)).decode()
    query = dict(parse_qsl(urlsplit(url).query))
    assert query["X-Amz-Security-Token"] == "of-the-role"
    assert query["X-Amz-Signature"] == signature(url, EXAMPLE_SECRET, payload=EMPTY)


def test_what_aws_says_of_a_role_that_it_refuses_is_named(web_identity):
    pytest.importorskip("aws_msk_iam_sasl_signer")
    web_identity.write_text("of-another-provider")
    with pytest.raises(AuthenticationFailedError, match="InvalidIdentityToken") as raised:
        fetch_token(MSK)
    assert "of-another-provider" not in str(raised.value)


def test_without_the_package_the_message_names_the_extra_that_has_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(InputError, match="aws-msk-iam-sasl-signer-python") as raised:
        fetch_token(MSK)
    assert "replicator[aws]" in raised.value.remedy
