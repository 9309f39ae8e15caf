"""A token file that is missing or empty opens nothing, neither at the start nor later."""

import os
import subprocess
import sys

import httpx
import pytest

from replicator.api.access.token import TokenFile, read_token
from replicator.api.server.address import HttpAddress, bind
from replicator.api.server.start import http_in_thread
from replicator.cli.main import run_command
from replicator.errors import InputError


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (b"", "is empty"),
        (b" \n\r\n", "is empty"),
        (b"x" * 5000, "at most 4096"),
        ("größe".encode(), "printable"),
        (b"two\nlines", "printable"),
    ],
)
def test_what_is_no_token_is_refused_with_place_and_remedy(tmp_path, content, wrong):
    path = tmp_path / "token"
    path.write_bytes(content)
    with pytest.raises(InputError, match=wrong) as caught:
        read_token(path)
    assert str(path) in caught.value.subject
    assert caught.value.remedy


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "empty"])
def test_a_file_without_a_token_is_a_clear_error(tmp_path, capfd, kind):
    path = tmp_path / "token"
    {
        "missing": lambda: None,
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
        "empty": path.touch,
    }[kind]()
    assert run_command(["check", "--http-token-file", str(path)]) == 2
    said = capfd.readouterr().err
    assert "Internal error" not in said
    assert str(path) in said


def test_a_worker_does_not_start_with_an_empty_token_file(tmp_path):
    path = tmp_path / "token"
    path.touch()
    started = subprocess.run(
        [
            sys.executable, "-m", "replicator", "run", "-f", "topologies/three-regions.yaml",
            "--processes", "1", "--http", "127.0.0.1:0", "--http-token-file", path,
        ],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert started.returncode == 2
    assert f"{path}: the token file is empty" in started.stderr


def test_a_token_that_is_exchanged_holds_at_once_and_one_that_is_lost_locks_the_door(
    tmp_path, worker
):
    path = tmp_path / "token"
    path.write_text("first-token\n")
    bound = bind(HttpAddress(host="0.0.0.0", port=0, asked=True))  # noqa: S104
    with http_in_thread(worker, bound=bound, token=TokenFile(path).current) as url:

        def ask(token):
            answers = [
                httpx.get(
                    f"{url}/api/v1/status", headers={"Authorization": f"Bearer {token}".strip()}
                ),
                httpx.post(
                    f"{url}/api/v1/pause",
                    headers={"Authorization": f"Bearer {token}".strip()},
                    json={"flow": "east->west"},
                ),
            ]
            return {answer.status_code for answer in answers}

        assert ask("first-token") == {200}
        path.write_text("second-token")
        assert ask("first-token") == {403}
        assert ask("second-token") == {200}
        path.write_text("")
        for token in ("second-token", "first-token", "", "None"):
            assert ask(token) == {403}
        path.unlink()
        assert ask("") == {403}
        assert httpx.get(f"{url}/livez").status_code == 200
        path.write_text("third-token")
        assert ask("third-token") == {200}
