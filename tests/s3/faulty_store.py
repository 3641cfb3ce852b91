"""Stands between a client and the object store, and behaves badly when it is told to.

In a process of its own: `deltalake` waits for a store without giving way to other threads of its process.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
from pyarrow.fs import S3FileSystem

from certificates import authority  # type: ignore[import-not-found]

_LENGTH = "content-length"
_OF_A_CONNECTION = {"connection", "expect", "keep-alive", "transfer-encoding"}
_CONTROL, _MET = "/-fault", "/-met"
_WHOSE = re.compile(r'(\\"attempt\\": ?\\"|"txnId":")[^"\\]*')
"""Where a commit says who made it."""
COMMITS = r"/_delta_log/\d{20}\.json$"
PROBES = r"/\.probe-"


@dataclass
class Fault:
    """What happens to each put whose path `puts` finds; `met` counts them."""

    puts: str
    ignores_condition: bool = False
    """The store has never heard of If-None-Match."""
    refuse_with: int | None = None
    lose_answers: int = 0
    """So many times it is done, and nobody hears of it."""
    holds: int = 0
    """So many wait until the store behaves again, whether or not their client still lives then."""
    rival: str | None = None
    """Another attempt of this name commits the same step at the last moment."""
    met: int = 0


class FaultyStore:
    """Hands everything on as it came; the signature covers the name of this host, which stays in it."""

    def __init__(self, target: str, *, login: str, password: str, certificate: tuple[Path, Path]) -> None:
        """`certificate` and its key, by an authority that no client knows by itself."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        arguments = (theirs, target, login, password, certificate)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        self.endpoint = f"https://127.0.0.1:{ours.recv()}"
        self._trusted = ssl.create_default_context(cadata=authority().pem)

    @contextmanager
    def behaving(self, fault: Fault) -> Iterator[Fault]:
        """`fault.met` is known behind the block."""
        self._tell(asdict(fault))
        try:
            yield fault
        finally:
            fault.met = self._tell(None)

    def wait_until_met(self) -> None:
        """By the first of those that the fault is meant for."""
        answer = httpx.put(f"{self.endpoint}{_MET}", timeout=240, trust_env=False, verify=self._trusted)
        answer.raise_for_status()

    def close(self) -> None:
        self._process.terminate()
        self._process.join()

    def _tell(self, fault: dict[str, Any] | None) -> int:
        """How many the one before has met."""
        answer = httpx.put(
            f"{self.endpoint}{_CONTROL}",
            content=json.dumps(fault),
            timeout=30,
            trust_env=False,
            verify=self._trusted,
        )
        return int(answer.json())


def _serve(told: Connection, target: str, login: str, password: str, certificate: tuple[Path, Path]) -> None:
    server = _Server(("127.0.0.1", 0), _Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    # The handshake is the connection's thread's, not the one's that waits for the next connection.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.target = target
    server.filesystem = S3FileSystem(
        access_key=login, secret_key=password, endpoint_override=f"http://{target}", region="us-east-1"
    )
    told.send(server.server_port)
    server.serve_forever()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    target: str
    filesystem: S3FileSystem
    fault: Fault | None = None
    guard = threading.Condition()

    def replace_fault(self, document: dict[str, Any] | None) -> int:
        with self.guard:
            before, self.fault = self.fault, None if document is None else Fault(**document)
            self.guard.notify_all()
        return 0 if before is None else before.met

    def wait_until_met(self) -> None:
        with self.guard:
            self.guard.wait_for(lambda: self.fault is not None and self.fault.met > 0)

    def hold(self, fault: Fault) -> None:
        with self.guard:
            self.guard.wait_for(lambda: self.fault is not fault)

    def forget(self, path: str) -> None:
        """The header is signed, so it cannot be taken out: the object that it would meet is."""
        with suppress(FileNotFoundError):
            self.filesystem.delete_file(unquote(path).lstrip("/"))

    def rename_author(self, path: str, name: str) -> None:
        """What was just committed is now another attempt's."""
        key = unquote(path).lstrip("/")
        with self.filesystem.open_input_stream(key) as stream:
            commit = bytes(stream.read()).decode()
        with self.filesystem.open_output_stream(key) as stream:
            stream.write(_WHOSE.sub(rf"\g<1>{name}", commit).encode())


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def handle(self) -> None:
        # A client that trusts nobody here goes away.
        with suppress(ssl.SSLError, ConnectionError):
            super().handle()

    def _handle(self) -> None:
        body = self._body()
        if self.path == _CONTROL:
            met = self.server.replace_fault(json.loads(body))
            self._answer(200, [], json.dumps(met).encode())
            return
        if self.path == _MET:
            self.server.wait_until_met()
            self._answer(200, [], b"")
            return
        fault, number = self._fault()
        if fault is not None and number <= fault.holds:
            self.server.hold(fault)
        if fault is not None and fault.refuse_with is not None:
            self._answer(fault.refuse_with, [], b"")
            return
        if fault is not None and fault.ignores_condition:
            self.server.forget(self.path.split("?")[0])
        if fault is not None and fault.rival is not None:
            self._forward(body)
            self.server.rename_author(self.path.split("?")[0], fault.rival)
        status, headers, content = self._forward(body)
        if fault is not None and number <= fault.lose_answers:
            self.close_connection = True
            return
        self._answer(status, headers, content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815 - the base class's names

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _fault(self) -> tuple[Fault | None, int]:
        """What is to happen, and to how many it has happened with this one."""
        with self.server.guard:
            fault = self.server.fault
            if fault is None or self.command != "PUT" or not re.search(fault.puts, self.path.split("?")[0]):
                return None, 0
            fault.met += 1
            self.server.guard.notify_all()
            return fault, fault.met

    def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        upstream = http.client.HTTPConnection(self.server.target, timeout=60)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _OF_A_CONNECTION}
        try:
            upstream.request(self.command, self.path, body=body, headers=headers)
            answer = upstream.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            upstream.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        """The length that a HEAD tells is that of what it does not bring along."""
        own_length = self.command != "HEAD" or not headers
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _OF_A_CONNECTION and not (own_length and name.lower() == _LENGTH):
                self.send_header(name, value)
        if own_length:
            self.send_header(_LENGTH, str(len(content)))
        try:
            self.end_headers()
            self.wfile.write(content)
        except ConnectionError:  # the client has seen enough
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Nothing: thousands of requests."""
