"""What clients log in with: tokens are renewed in time, and files that cannot be used change nothing."""

import contextlib
import json
import os
import sys
import time
from pathlib import Path

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st
from identity_provider import OidcServer

from replicator.errors import AuthenticationFailedError, InputError, SecretUnavailableError
from replicator.kafka.clients.tokens import token_callback, told_end
from replicator.logins import cluster_login
from replicator.logins.cluster_login import ClusterLogin, login_of
from replicator.logins.expiry import ends_of_certificates
from replicator.logins.fetch_token import fetch_token
from replicator.logins.token import Token, jwt_claims, read_token
from replicator.logins.token_source import TokenSource
from replicator.redaction import redact_text
from replicator.topology.plan import ClusterPlan, OAuthPlan, SecretRef, SecurityPlan

NOW = 1_800_000_000.0
EAST = "cluster:east"


def oauth_cluster(**oauth: object) -> ClusterPlan:
    security = SecurityPlan("SASL_SSL", "OAUTHBEARER", oauth=OAuthPlan(**oauth))
    return ClusterPlan("east", ("a:1",), security)


class Source:
    """Gives tokens of 100 seconds, or fails."""

    def __init__(self) -> None:
        self.now = NOW
        self.fails = False
        self.stuck: Token | None = None
        self.asked = 0
        self.tokens = TokenSource(self._fetch, subject=EAST, now=lambda: self.now)

    def _fetch(self) -> Token:
        self.asked += 1
        if self.fails:
            raise AuthenticationFailedError("the server is away", subject=EAST, remedy="Look.")
        return self.stuck or Token(f"token-{self.asked}", self.now, self.now + 100)


def test_a_token_is_renewed_at_80_percent_of_its_life_and_shared_until_then():
    source = Source()
    first = source.tokens.current()
    source.now += 79
    source.tokens.renew_when_due()
    assert source.tokens.current() == first
    assert source.asked == 1
    source.now += 1
    source.tokens.renew_when_due()
    assert source.tokens.current().value == "token-2"
    assert source.tokens.problem() is None


def test_a_renewal_that_fails_is_reported_long_before_the_old_token_ends_and_tried_again_soon():
    source = Source()
    source.tokens.current()
    source.fails = True
    source.now += 80
    source.tokens.renew_when_due()
    problem = source.tokens.problem()
    assert problem.code == "TOKEN_NOT_RENEWED"
    assert "holds until 2027-01-15T08:01:40+00:00" in problem.detail
    assert "the server is away" in problem.detail
    assert source.tokens.current().value == "token-1"

    source.tokens.renew_when_due()
    assert source.asked == 2  # not in a circle
    source.now += 21
    with pytest.raises(AuthenticationFailedError, match="away"):
        source.tokens.current()
    assert source.tokens.last().value == "token-1"
    assert "it has expired" in source.tokens.problem().detail
    source.fails = False
    source.now += 3
    assert source.tokens.current().value == "token-4"
    assert source.tokens.problem() is None


def test_a_source_that_goes_on_giving_the_old_token_has_failed_after_90_percent():
    source = Source()
    source.stuck = source.tokens.current()
    source.now += 85
    source.tokens.renew_when_due()
    assert source.tokens.problem() is None  # kubelet takes a moment
    source.now += 6
    source.tokens.renew_when_due()
    assert "goes on giving the old one" in source.tokens.problem().detail


def test_the_library_has_to_ask_again_just_after_the_renewal_and_soon_without_one():
    token = Token("t", NOW, NOW + 100)
    for now in (NOW, NOW + 50, NOW + 78):
        assert now + 0.8 * (told_end(token, now) - now) == pytest.approx(NOW + 81.5)
    for now in (NOW + 81, NOW + 99, NOW + 500):
        assert told_end(token, now) == now + 2


def test_a_source_that_never_gave_a_token_fails_under_its_own_name():
    source = Source()
    source.fails = True
    for ask in (source.tokens.current, source.tokens.last):
        with pytest.raises(AuthenticationFailedError, match="away"):
            ask()
    assert source.tokens.problem().code == "AUTHENTICATION_FAILED"


def test_tokens_are_read_bare_or_in_json_and_say_when_they_end():
    bare = read_token("opaque\n", now=NOW)
    assert (bare.value, bare.ends_at - NOW) == ("opaque", 300)
    answer = json.dumps({"access_token": "opaque", "expires_in": 60})
    assert read_token(answer, now=NOW).ends_at == NOW + 60
    server = OidcServer({}, life_seconds=50)
    server.stop()
    token = read_token(server.token("me"), now=time.time())
    assert token.principal == "me"
    assert 49 < token.ends_at - time.time() < 51
    assert "me" not in repr(token).replace("name", "").replace("principal='me'", "")


@pytest.mark.parametrize("text", ["", "{}", '{"access_token": ""}', "two words", "{broken", "ä"])
def test_what_is_no_token_is_refused_without_being_shown(text):
    with pytest.raises(ValueError, match="it is") as raised:
        read_token(text, now=NOW)
    assert not text or text not in str(raised.value)


@given(st.text())
def test_any_text_is_a_token_or_refused(text):
    assert isinstance(jwt_claims(text), dict)
    with contextlib.suppress(ValueError):
        read_token(text, now=NOW)


def test_a_token_command_is_run_without_a_shell_and_its_output_is_never_shown(tmp_path):
    script = tmp_path / "get"
    script.write_text("import sys; print(sys.argv[1]); print('noise', file=sys.stderr)")
    command = (sys.executable, str(script), "t0ken;$(id)")
    token = fetch_token(oauth_cluster(token_command=command))
    assert token.value == "t0ken;$(id)"
    assert "t0ken" not in redact_text(f"log line with {token.value}")

    script.write_text("import sys; print('s3cret-output'); sys.exit(3)")
    with pytest.raises(AuthenticationFailedError, match="ended with 3") as raised:
        fetch_token(oauth_cluster(token_command=command))
    assert "s3cret" not in raised.value.paragraph()
    with pytest.raises(AuthenticationFailedError, match="cannot be run"):
        fetch_token(oauth_cluster(token_command=("/nowhere/at/all",)))


def test_a_token_endpoint_is_asked_with_the_client_credentials_grant(monkeypatch):
    monkeypatch.setenv("CLIENT_SECRET", "s3cret/of+tests")
    server = OidcServer({"me": "s3cret/of+tests"})
    cluster = oauth_cluster(
        token_url=f"{server.url}/token",
        client_id=SecretRef(literal="me"),
        client_secret=SecretRef(env="CLIENT_SECRET"),
        scope="kafka read",
    )
    try:
        assert jwt_claims(fetch_token(cluster).value)["sub"] == "me"
        assert server.asked[-1]["scope"] == ["kafka read"]
        server.away = True
        with pytest.raises(AuthenticationFailedError, match="HTTP status 503"):
            fetch_token(cluster)
    finally:
        server.stop()
    with pytest.raises(AuthenticationFailedError, match="does not answer: Connection refused"):
        fetch_token(cluster)


def test_a_redirect_never_takes_the_client_secret_elsewhere(monkeypatch):
    monkeypatch.setenv("CLIENT_SECRET", "s3cret-of-tests")
    elsewhere, server = OidcServer({}), OidcServer({})
    server._grant = lambda *_: (302, {})
    server.location = f"{elsewhere.url}/token"
    try:
        with pytest.raises(AuthenticationFailedError, match="HTTP status 302"):
            fetch_token(
                oauth_cluster(
                    token_url=f"{server.url}/token",
                    client_id=SecretRef(literal="me"),
                    client_secret=SecretRef(env="CLIENT_SECRET"),
                )
            )
        assert elsewhere.asked == []
    finally:
        elsewhere.stop()
        server.stop()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Certificate, key and authority as kubelet mounts them: behind a symlink that is swapped."""
    swap(tmp_path, "first")
    return tmp_path


def swap(directory: Path, name: str, **broken: str) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("replicator.test", common_name=name)
    fresh = directory / f"..{name}"
    fresh.mkdir()
    content = {
        "ca.pem": authority.cert_pem.bytes(),
        "tls.crt": issued.cert_chain_pems[0].bytes(),
        "tls.key": issued.private_key_pem.bytes(),
        "password": f"password-of-{name}".encode(),
    }
    for file, data in content.items():
        key = file.partition(".")[2] or file
        (fresh / file).write_bytes(broken[key].encode() if key in broken else data)
        if not (directory / file).is_symlink():
            (directory / file).symlink_to(Path("..data", file))
    link = directory / "..data_tmp"
    link.symlink_to(fresh.name)
    os.rename(link, directory / "..data")  # noqa: PTH104  as kubelet does it


def file_cluster(directory: Path) -> ClusterPlan:
    return ClusterPlan(
        "east",
        ("a:1",),
        SecurityPlan(
            "SASL_SSL", "SCRAM-SHA-512",
            username=SecretRef(literal="me"), password=SecretRef(file=str(directory / "password")),
            ca=SecretRef(file=str(directory / "ca.pem")),
            certificate=SecretRef(file=str(directory / "tls.crt")),
            key=SecretRef(file=str(directory / "tls.key")),
        ),
    )  # fmt: skip


def test_swapped_files_are_taken_as_a_whole(files):
    login = ClusterLogin(file_cluster(files))
    assert login.security().password == "password-of-first"
    assert (login.version, login.tls_version) == (1, 1)
    login.look()
    assert login.version == 1
    swap(files, "second")
    login.look()
    assert login.security().password == "password-of-second"
    assert (login.version, login.tls_version) == (2, 2)
    (files / "password").unlink()
    (files / "password").write_text("third\n")
    login.look()
    assert (login.version, login.tls_version) == (3, 2)  # taken in place


@pytest.mark.parametrize("broken", [{"crt": "half a fi"}, {"key": ""}, {"pem": "no PEM"}])
def test_files_that_cannot_be_used_change_nothing_and_are_a_problem_once_they_last(
    files, broken, monkeypatch
):
    login = ClusterLogin(file_cluster(files))
    before = login.security()
    swap(files, "second", **broken)
    login.look()
    assert login.security() == before
    assert login.problem() is None  # certificate and key are seldom replaced in one step
    monkeypatch.setattr(cluster_login, "PATIENCE_SECONDS", 0.0)
    problem = login.problem()
    assert problem.code == "CREDENTIALS_UNUSABLE"
    assert "what was there before stays in use" in problem.detail
    swap(files, "third")
    login.look()
    assert login.problem() is None
    assert login.security() != before


def test_a_key_of_another_certificate_is_no_identity(files):
    login = ClusterLogin(file_cluster(files))
    before = login.security()
    other = trustme.CA().issue_cert("other.test").private_key_pem.bytes().decode()
    swap(files, "second", key=other)
    assert login.security() == before


def test_without_anything_usable_the_first_client_says_why(files):
    (files / "tls.key").unlink()
    with pytest.raises(SecretUnavailableError, match=r"security\.key"):
        ClusterLogin(file_cluster(files)).security()
    (files / "tls.key").write_text("no key")
    with pytest.raises(InputError, match="cannot be used"):
        ClusterLogin(file_cluster(files)).security()


def test_a_login_is_shared_and_followed_while_it_is_in_use(files):
    cluster = file_cluster(files)
    login = login_of(cluster)
    assert login_of(cluster) is login
    assert login.followed
    assert not login_of(ClusterPlan("west", ("b:1",))).followed


def test_the_ends_of_certificates_are_read_from_them(files):
    from cryptography import x509

    text = (files / "tls.crt").read_text() + (files / "ca.pem").read_text()
    wanted = [
        each.not_valid_after_utc.timestamp()
        for each in x509.load_pem_x509_certificates(text.encode())
    ]
    assert ends_of_certificates(text) == wanted
    login = ClusterLogin(file_cluster(files))
    login.look()
    assert login.expiries() == {"certificate": wanted[0], "ca": wanted[1]}
    with pytest.raises(ValueError, match="cut off"):
        ends_of_certificates("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----")


def test_clients_of_a_drill_log_in_with_tokens_too(tmp_path):
    from confluent_kafka import Producer

    from replicator.drill.environment.link_environment import endpoint

    server = OidcServer({}, life_seconds=50)
    server.stop()
    (tmp_path / "token").write_text(server.token("me"))
    settings = endpoint(oauth_cluster(token_file=str(tmp_path / "token"))).client_settings()
    assert settings["oauth_cb"]("")[2] == "me"
    Producer(settings)


def test_the_library_gets_another_token_when_it_asks_though_the_login_is_not_followed():
    source = Source()
    answer = token_callback(source.tokens)
    assert answer("")[0] == "token-1"
    source.now += 82
    assert answer("")[0] == "token-2"
