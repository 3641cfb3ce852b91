"""An OAuth server on loopback, over TLS: tokens by client credentials, signed, with their public key."""

from __future__ import annotations

import json
import ssl
import threading
import time
from base64 import b64decode, urlsafe_b64encode
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from certificates import Authority  # type: ignore[import-not-found]

CLIENT_ID, CLIENT_SECRET = "lakehouse", 'sec"ret\\of the client'
_KEY_ID = "tests"


class OAuthServer:
    def __init__(self, authority: Authority, folder: Path, *, seconds: int = 3600) -> None:
        self.seconds = seconds
        """How long a token is good."""
        self.asked: list[dict[str, list[str]]] = []
        """The forms of those that were let in."""
        self.status = 200
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.socket = authority.server_context(folder).wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.url = f"https://127.0.0.1:{self._server.server_port}"
        serve = {"poll_interval": 0.01}
        threading.Thread(target=self._server.serve_forever, kwargs=serve, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def token(self) -> str:
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": "lakehouse",
            "sub": CLIENT_ID,
            "scope": "lake",
            "iat": now,
            "exp": now + self.seconds,
            "jti": str(len(self.asked)),
        }
        signed = f"{_part({'alg': 'RS256', 'kid': _KEY_ID, 'typ': 'JWT'})}.{_part(claims)}"
        return f"{signed}.{_text(self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def _keys(self) -> dict[str, Any]:
        public = self._key.public_key().public_numbers()
        modulus, exponent = (
            _text(number.to_bytes(size)) for number, size in ((public.n, 256), (public.e, 3))
        )
        key = {"kty": "RSA", "kid": _KEY_ID, "use": "sig", "alg": "RS256", "n": modulus, "e": exponent}
        return {"keys": [key]}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        ours = self

        class Handler(BaseHTTPRequestHandler):
            def handle(self) -> None:
                # A client that trusts nobody here goes away.
                with suppress(ssl.SSLError, ConnectionError):
                    super().handle()

            def do_GET(self) -> None:
                self._answer(200, ours._keys())

            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                _, _, login = self.headers.get("Authorization", "").partition(" ")
                if b64decode(login) != f"{CLIENT_ID}:{CLIENT_SECRET}".encode():
                    self._answer(401, {"error": "invalid_client"})
                    return
                ours.asked.append(form)
                token = {"access_token": ours.token(), "token_type": "Bearer", "expires_in": ours.seconds}
                self._answer(ours.status, token)

            def _answer(self, status: int, document: dict[str, Any]) -> None:
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        return Handler


def _part(document: dict[str, Any]) -> str:
    return _text(json.dumps(document).encode())


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
