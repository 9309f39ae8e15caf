"""HTTPS: the certificate that is in the files now, no matter how they were exchanged, and a client that checks it."""

import socket
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from replicator.api.asking import watch_release
from replicator.api.server.address import HttpAddress, bind
from replicator.api.server.certificate import ServerCertificate
from replicator.api.server.start import http_in_thread
from replicator.cli.operation import run
from replicator.clock import SystemClock
from replicator.errors import InputError
from replicator.testing import wait_until


@pytest.fixture
def authority(tmp_path):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    return authority


@pytest.fixture
def issue(authority, tmp_path):
    """Mounts a new certificate as kubelet does: a directory of its own, then the link is turned."""

    def mount(number):
        issued = authority.issue_cert("localhost", "127.0.0.1")
        folder = tmp_path / f"..{number}"
        folder.mkdir()
        issued.cert_chain_pems[0].write_to_path(folder / "tls.crt")
        issued.private_key_pem.write_to_path(folder / "tls.key")
        fresh = tmp_path / "..fresh"
        fresh.symlink_to(folder.name)
        fresh.rename(tmp_path / "mounted")
        return issued.cert_chain_pems[0].bytes()

    return mount


@pytest.fixture
def files(tmp_path):
    return tmp_path / "mounted" / "tls.crt", tmp_path / "mounted" / "tls.key"


def shown(port, tmp_path):
    """The certificate that a new connection gets, checked against the authority."""
    context = ssl.create_default_context(cafile=tmp_path / "ca.crt")
    with (
        socket.create_connection(("127.0.0.1", port), timeout=5) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as wrapped,
    ):
        return ssl.DER_cert_to_PEM_cert(wrapped.getpeercert(binary_form=True)).strip().encode()


def test_new_connections_get_the_certificate_that_is_mounted_now(
    worker, issue, files, tmp_path, monkeypatch
):
    monkeypatch.setattr("replicator.api.server.serving.TICK_SECONDS", 0.1)
    first = issue(1)
    bound = bind(HttpAddress(port=0, asked=True))
    with http_in_thread(worker, bound=bound, token=None, certificate=ServerCertificate(*files)):
        assert shown(bound.port, tmp_path) == first.strip()
        second = issue(2)
        wait_until(
            lambda: shown(bound.port, tmp_path) == second.strip(),
            timeout_seconds=10.0,
            describe="the second certificate",
        )


def test_a_pair_that_does_not_fit_changes_nothing_until_it_does(issue, files, tmp_path):
    issue(1)
    certificate = ServerCertificate(*files)
    other = trustme.CA().issue_cert("localhost")
    other.private_key_pem.write_to_path(files[1])
    assert "cannot be used" in certificate.problem()
    with pytest.raises(InputError, match="cannot be used"):
        ServerCertificate(*files)
    other.cert_chain_pems[0].write_to_path(files[0])
    assert certificate.problem() == ""
    assert ServerCertificate(*files).context is not certificate.context


def test_check_asks_over_tls_and_refuses_who_it_does_not_know(worker, issue, files, tmp_path):
    issue(1)
    bound = bind(HttpAddress(port=0, asked=True))
    with http_in_thread(worker, bound=bound, token=None, certificate=ServerCertificate(*files)):

        def ask(authorities):
            health = watch_release(
                [f"https://localhost:{bound.port}"], token=None, authorities=authorities,
                timeout_seconds=0.0, clock=SystemClock(), on_waiting=lambda _: None,
            )  # fmt: skip
            return [reason for each in health.workers for reason in each.reasons]

        assert ask(tmp_path / "ca.crt") == []
        assert any("CERTIFICATE_VERIFY_FAILED" in reason for reason in ask(None))


def test_a_url_says_https_where_there_is_a_certificate():
    bound = bind(HttpAddress(port=0, asked=True))
    assert replace(bound, scheme="https").url == f"https://127.0.0.1:{bound.port}"
    bound.listener.close()


@pytest.mark.parametrize("pair", [("tls.crt", None), (None, "tls.key")])
def test_half_a_pair_is_refused(pair):
    with pytest.raises(InputError, match="is missing"):
        run._certificate(*(each and Path(each) for each in pair))
