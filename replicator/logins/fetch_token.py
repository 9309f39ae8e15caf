"""Getting one token from where a cluster's tokens come from; blocking, a few seconds at most.

No answer, output or credential of a source is ever part of an error: any of them may hold a secret.
"""

import base64
import http.client
import ssl
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from replicator.errors import AuthenticationFailedError, InputError, ReplicatorError
from replicator.logins.token import Token, read_token
from replicator.redaction import register_secret
from replicator.topology.file.secrets import read_secret
from replicator.topology.plan import ClusterPlan, OAuthPlan

ANSWER_SECONDS = 10.0
"""How long a token endpoint or a command may take."""

_MOST_BYTES = 256 * 1024


def fetch_token(cluster: ClusterPlan) -> Token:
    """Asks the cluster's source for a token and registers it for redaction.

    Raises:
        AuthenticationFailedError: there is none; says why, and what to check.
        InputError: a secret or a package is missing that is needed to ask.
    """
    oauth = cluster.security.oauth
    if oauth is None:
        return _of_aws(cluster)
    try:
        if oauth.token_file:
            text = _of_file(cluster, oauth.token_file)
        elif oauth.token_command:
            text = _of_command(cluster, oauth.token_command)
        else:
            text = _of_endpoint(cluster, oauth)
        token = read_token(text, now=time.time())
    except ValueError as error:
        place = oauth.token_file or oauth.token_url or "security.oauth.tokenCommand"
        raise _none(cluster, f"{place} gave no token: {error}", "Check what it gives.") from None
    register_secret(token.value)
    return token


def _of_file(cluster: ClusterPlan, path: str) -> str:
    try:
        with Path(path).open(encoding="utf-8") as file:
            return file.read(_MOST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        wrong = f"the token file {path} cannot be read: {why}"
        raise _none(cluster, wrong, "Check that it is mounted and readable.") from None


def _of_command(cluster: ClusterPlan, command: tuple[str, ...]) -> str:
    name = command[0]
    remedy = "Run it by hand in the worker's environment."
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            timeout=ANSWER_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        wrong = f"the token command {name} did not end within {ANSWER_SECONDS:g} s"
        raise _none(cluster, wrong, remedy) from None
    except OSError as error:
        wrong = f"the token command {name} cannot be run: {error.strerror}"
        raise _none(cluster, wrong, remedy) from None
    if done.returncode != 0:
        raise _none(cluster, f"the token command {name} ended with {done.returncode}", remedy)
    return done.stdout[:_MOST_BYTES].decode(errors="replace")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would take the client secret to another place."""

    def redirect_request(self, *_: Any) -> None:  # noqa: ANN401  as the base class has it
        """Refuses."""
        return


def _of_endpoint(cluster: ClusterPlan, oauth: OAuthPlan) -> str:
    """The client-credentials grant of RFC 6749, section 4.4; the secret goes into the header."""
    remedy = "Check tokenUrl, clientId, clientSecret and scope with the identity provider."
    if oauth.client_id is None or oauth.client_secret is None:
        raise InputError(
            "security.oauth needs clientId and clientSecret", subject=_subject(cluster)
        )
    identity = read_secret(oauth.client_id, cluster.alias, "oauth.clientId")
    secret = read_secret(oauth.client_secret, cluster.alias, "oauth.clientSecret")
    login = base64.b64encode(f"{_encoded(identity)}:{_encoded(secret)}".encode()).decode()
    register_secret(login)
    fields = {"grant_type": "client_credentials"} | ({"scope": oauth.scope} if oauth.scope else {})
    request = urllib.request.Request(  # noqa: S310  the topology takes http and https only
        oauth.token_url,
        data=urllib.parse.urlencode(fields).encode(),
        headers={"Authorization": f"Basic {login}", "Accept": "application/json"},
    )
    try:
        authority = None if oauth.ca is None else read_secret(oauth.ca, cluster.alias, "oauth.ca")
        context = ssl.create_default_context(cadata=authority)
        opener = urllib.request.build_opener(
            _NoRedirect(), urllib.request.HTTPSHandler(context=context)
        )
        with opener.open(request, timeout=ANSWER_SECONDS) as answer:
            text: str = answer.read(_MOST_BYTES).decode(errors="replace")
            return text
    except urllib.error.HTTPError as error:
        error.close()
        wrong = f"{oauth.token_url} refuses us with HTTP status {error.code}"
        raise _none(cluster, wrong, remedy) from None
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        why = getattr(reason, "strerror", None) or type(reason).__name__
        raise _none(cluster, f"{oauth.token_url} does not answer: {why}", remedy) from None


def _of_aws(cluster: ClusterPlan) -> Token:
    """A request that is signed for the cluster's region; AWS's own package finds the credentials."""
    subject, region = _subject(cluster), cluster.security.aws_region
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
    except ImportError:
        raise InputError(
            "AWS_MSK_IAM needs the package aws-msk-iam-sasl-signer-python",
            subject=subject,
            remedy="Install replicator with the extra 'aws': pip install 'replicator[aws]'.",
        ) from None
    now = time.time()
    try:
        value, ends_at_ms = MSKAuthTokenProvider.generate_auth_token(region)
    except Exception as error:  # noqa: BLE001  botocore has no base class of its own for all of them
        raise _none(
            cluster,
            f"AWS's default credential chain gives no credentials: {_aws_code(error)}",
            "Give the worker a role: web identity, pod identity or instance profile.",
        ) from None
    register_secret(value)
    return Token(value, now, float(ends_at_ms) / 1000)


def _aws_code(error: Exception) -> str:
    """What AWS calls the error, else its type; texts of AWS may quote what was sent."""
    said = getattr(error, "response", None)
    code = said.get("Error", {}).get("Code") if isinstance(said, dict) else None
    return code if isinstance(code, str) else type(error).__name__


def _encoded(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def _subject(cluster: ClusterPlan) -> str:
    return f"cluster:{cluster.alias}"


def _none(cluster: ClusterPlan, wrong: str, remedy: str) -> ReplicatorError:
    return AuthenticationFailedError(wrong, subject=_subject(cluster), remedy=remedy)
