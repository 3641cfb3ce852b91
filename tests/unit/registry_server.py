"""A schema registry in this process: real HTTP, scripted answers, failures as told."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


class FakeRegistry:
    """Answers by path; `failures` are sent first, one per call."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.failures: list[int] = []
        self.calls: list[str] = []
        self.paths: list[str] = []
        """The calls without their queries."""
        self.authorizations: list[str | None] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                fake.calls.append(self.path)
                fake.authorizations.append(self.headers.get("Authorization"))
                fake.paths.append(urlsplit(self.path).path)
                known = self.path in fake.answers
                status = fake.failures.pop(0) if fake.failures else (200 if known else 404)
                body = fake.answers.get(self.path, {"error_code": 40403})
                sent = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
