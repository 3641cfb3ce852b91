"""Somebody else at the address of the source, on a real socket: what he is told."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdc_lakehouse.config.settings import Connection, Role
from cdc_lakehouse.database.access import Database
from cdc_lakehouse.errors import SourceUnavailableError
from certificates import Authority, authority  # type: ignore[import-not-found]

PASSWORD = "s3cret-of-the-reader"
_SSL_REQUEST = struct.pack("!ii", 8, 80877103)
_CLEARTEXT_PASSWORD = b"R" + struct.pack("!ii", 8, 3)


class Impostor:
    """Asks every client for its password in clear text, as no honest server here would."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self.heard = b""
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """All that clients said is heard afterwards. A second call does nothing."""
        if self._thread.is_alive():
            self._listener.shutdown(socket.SHUT_RDWR)
            self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client:
                try:
                    self._talk(client)
                except (OSError, ssl.SSLError):
                    continue

    def _talk(self, client: socket.socket) -> None:
        self.heard += (said := client.recv(4096))
        if said == _SSL_REQUEST:
            client.sendall(b"N" if self._tls is None else b"S")
            if self._tls is not None:
                client = self._tls.wrap_socket(client, server_side=True)
            self.heard += client.recv(4096)
        client.sendall(_CLEARTEXT_PASSWORD)
        self.heard += client.recv(4096)


@pytest.fixture
def impostor() -> Iterator[Callable[[ssl.SSLContext | None], Impostor]]:
    started: list[Impostor] = []

    def start(tls: ssl.SSLContext | None) -> Impostor:
        started.append(Impostor(tls))
        return started[-1]

    yield start
    for each in started:
        each.close()


def database(impostor: Impostor, **extra: str) -> Database:
    return Database.of(
        Connection(
            Role.SOURCE,
            host="127.0.0.1",
            port=impostor.port,
            login="reader",
            password=PASSWORD,
            extra={"database": "shop", **extra},
        )
    )


def trusted(folder: Path, whose: Authority) -> str:
    file = folder / "trusted.pem"
    file.write_text(whose.pem)
    return str(file)


@pytest.mark.parametrize("sslmode", [None, "disable", "allow", "prefer"])
def test_a_server_without_tls_never_gets_the_password_itself(sslmode, impostor):
    somebody = impostor(None)

    with pytest.raises(SourceUnavailableError) as caught:
        database(somebody, **({"sslmode": sslmode} if sslmode else {})).slots()

    somebody.close()
    assert "password" in caught.value.reason
    assert PASSWORD.encode() not in somebody.heard


@pytest.mark.parametrize("sslmode", ["verify-full", "verify-ca"])
def test_a_server_that_the_authority_does_not_know_gets_nothing(sslmode, impostor, tmp_path):
    somebody = impostor(Authority("somebody else").server_context(tmp_path))
    file = trusted(tmp_path, authority())

    with pytest.raises(SourceUnavailableError) as caught:
        database(somebody, sslmode=sslmode, sslrootcert=file).slots()

    somebody.close()
    assert "certificate verify failed" in caught.value.reason
    assert somebody.heard == _SSL_REQUEST


def test_a_server_that_shows_who_it_is_may_ask_for_the_password(impostor, tmp_path):
    honest = impostor(authority().server_context(tmp_path))

    with pytest.raises(SourceUnavailableError):  # it goes away behind it
        database(honest, sslmode="verify-full", sslrootcert=trusted(tmp_path, authority())).slots()

    honest.close()
    assert PASSWORD.encode() in honest.heard
