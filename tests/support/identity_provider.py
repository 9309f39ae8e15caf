"""A small OIDC provider for tests: client-credentials grant, RS256 tokens, a JSON Web Key Set."""

import base64
import json
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from replicator.testing import IdentityProvider

AUDIENCE = "kafka"


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


RENEWED_AT = 0.8
"""The part of a token's life after which our processes renew it."""


class OidcServer:
    """Serves on loopback until ``stop``; ``away`` refuses the token endpoint with status 503.

    Clients in ``served`` get tokens all the same: those of the test itself, beside the ones that are judged.
    With ``in_step`` all tokens are renewed at the same moments, whenever the first ones were fetched: so
    all are as old when the endpoint goes away.
    """

    def __init__(
        self, clients: dict[str, str], *, life_seconds: float = 30.0, in_step: bool = False
    ) -> None:
        self.clients = clients
        self.life_seconds = life_seconds
        self.in_step = in_step
        self.away = False
        self.served: frozenset[str] = frozenset()
        self.refused = 0
        self.issued_at: dict[str, list[float]] = {client: [] for client in clients}
        self.location = ""
        self.issued: list[str] = []
        self.asked: list[dict[str, list[str]]] = []
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def provider(self, *, reauthenticate_seconds: int = 0) -> IdentityProvider:
        return IdentityProvider(
            token_url=f"{self.url}/token",
            keys_url=f"{self.url}/keys",
            issuer=self.url,
            audience=AUDIENCE,
            reauthenticate_seconds=reauthenticate_seconds,
        )

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def token(self, client: str, *, life_seconds: float | None = None) -> str:
        now = time.time()
        claims = {
            "iss": self.url, "aud": AUDIENCE, "sub": client, "iat": now, "scope": "kafka",
            "exp": now + (self.life_seconds if life_seconds is None else life_seconds),
            "jti": uuid.uuid4().hex,
        }  # fmt: skip
        head = {"alg": "RS256", "typ": "JWT", "kid": "one"}
        text = ".".join(_base64url(json.dumps(part).encode()) for part in (head, claims))
        signature = self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        token = f"{text}.{_base64url(signature)}"
        self.issued.append(token)
        return token

    def _keys(self) -> dict[str, object]:
        public = self._key.public_key().public_numbers()
        size = (public.n.bit_length() + 7) // 8
        return {
            "keys": [
                {
                    "kty": "RSA", "kid": "one", "use": "sig", "alg": "RS256",
                    "n": _base64url(public.n.to_bytes(size, "big")),
                    "e": _base64url(public.e.to_bytes(3, "big")),
                }
            ]
        }  # fmt: skip

    def _grant(
        self, authorization: str, form: dict[str, list[str]]
    ) -> tuple[int, dict[str, object]]:
        self.asked.append(form)
        scheme, _, encoded = authorization.partition(" ")
        client, _, secret = base64.b64decode(encoded).decode().partition(":")
        client, secret = unquote(client), unquote(secret)
        if self.away and client not in self.served:
            self.refused += 1
            return 503, {}
        if scheme != "Basic" or self.clients.get(client) != secret:
            return 401, {"error": "invalid_client"}
        if form.get("grant_type") != ["client_credentials"]:
            return 400, {"error": "unsupported_grant_type"}
        life = self._life()
        token = self.token(client, life_seconds=life)
        self.issued_at[client].append(time.time())
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": life}

    def _life(self) -> float:
        if not self.in_step:
            return self.life_seconds
        step, now = RENEWED_AT * self.life_seconds, time.time()
        left = step - now % step
        return (left if left > step / 2 else left + step) / RENEWED_AT

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200, server._keys())

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                self._answer(*server._grant(self.headers.get("Authorization", ""), parse_qs(body)))

            def _answer(self, status: int, content: dict[str, object]) -> None:
                body = json.dumps(content).encode()
                self.send_response(status)
                if server.location:
                    self.send_header("Location", server.location)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
