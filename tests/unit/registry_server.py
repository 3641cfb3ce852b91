"""A schema registry in this process: real HTTP, scripted answers, failures as told."""

from __future__ import annotations

import json
import ssl
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


class FakeRegistry:
    """Answers by path; `failures` are sent first, one per call."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.answers: dict[str, Any] = {}
        self.failures: list[int] = []
        self.calls: list[str] = []
        self.paths: list[str] = []
        """The calls without their queries."""
        self.authorizations: list[str | None] = []
        self.encodings: dict[str, str] = {}
        """How the bytes of a path's answer say that they are packed."""
        self.hangs = False
        """It begins each answer and ends none while it stands."""
        self._stopped = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        if tls is not None:
            self.server.socket = tls.wrap_socket(
                self.server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.url = f"http{'' if tls is None else 's'}://127.0.0.1:{self.server.server_port}"
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def stop(self) -> None:
        self._stopped.set()
        self.server.shutdown()
        self.server.server_close()


def _handler_of(fake: FakeRegistry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def handle(self):
            # A client that trusts nobody here, or shows no certificate, goes away.
            with suppress(ssl.SSLError, ConnectionError):
                super().handle()

        def do_GET(self):
            fake.calls.append(self.path)
            fake.authorizations.append(self.headers.get("Authorization"))
            fake.paths.append(urlsplit(self.path).path)
            known = self.path in fake.answers
            status = fake.failures.pop(0) if fake.failures else (200 if known else 404)
            body = fake.answers.get(self.path, {"error_code": 40403})
            sent = body if isinstance(body, bytes) else json.dumps(body).encode()
            if fake.hangs:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-")
                fake._stopped.wait(60)
                return
            self.send_response(status)
            if self.path in fake.encodings:
                self.send_header("Content-Encoding", fake.encodings[self.path])
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *args):
            pass

    return Handler
