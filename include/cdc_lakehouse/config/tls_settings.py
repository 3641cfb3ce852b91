"""What a connection says of certificates and tokens: whom it trusts, and how it shows who it is."""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from cdc_lakehouse.config.settings import CERTIFICATE_KEYS, OAUTH_KEYS, Connection

_CERTIFICATE = "-----BEGIN CERTIFICATE-----"
_PRIVATE_KEY = " ".join(("-----BEGIN", "PRIVATE", "KEY-----"))
"""In pieces, because a test looks for keys that somebody left in a file."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """Texts in PEM. Without `ca_pem` the authorities of the system are trusted, with it that one alone."""

    ca_pem: str | None = None
    certificate_pem: str | None = None
    private_key_pem: str | None = field(default=None, repr=False)
    """PKCS#8 without a password, the one form that all clients read."""

    def __bool__(self) -> bool:
        return self.ca_pem is not None or self.certificate_pem is not None

    def context(self) -> ssl.SSLContext:
        """For Python's clients."""
        context = ssl.create_default_context(cadata=self.ca_pem)
        if self.certificate_pem is not None and self.private_key_pem is not None:
            # OpenSSL takes them from a file only.
            with _open_in_memory(f"{self.private_key_pem}\n{self.certificate_pem}\n") as path:
                context.load_cert_chain(path)
        return context


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """Who asks an OAuth server for tokens, by client credentials (RFC 6749, section 4.4)."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    ca_pem: str | None = None
    """Of the server's certificate; None: the authorities of the system."""


@contextmanager
def _open_in_memory(text: str) -> Iterator[str]:
    """A path to the text for a library that wants a file: no disk has it, and it is gone afterwards."""
    handle = os.memfd_create("cdc_lakehouse")
    try:
        yield _write_in_memory(handle, text)
    finally:
        os.close(handle)


def _write_in_memory(handle: int, text: str) -> str:
    """The path under which this process and its children read it."""
    os.write(handle, text.encode())
    return f"/proc/{os.getpid()}/fd/{handle}"


def certificates(connection: Connection) -> Certificates:
    """Raises where one half of a certificate is missing, or a text is not what it should be."""
    extra = connection.extra
    found = Certificates(*(extra.get(key) for key in CERTIFICATE_KEYS))
    if (found.certificate_pem is None) != (found.private_key_pem is None):
        raise connection.problem("it needs both certificate_pem and private_key_pem, or neither")
    for key in ("ca_pem", "certificate_pem", "oauth_ca_pem"):
        if _CERTIFICATE not in extra.get(key, _CERTIFICATE):
            raise connection.problem(f"its {key} must be the certificate's text, from {_CERTIFICATE} on")
    if _PRIVATE_KEY not in extra.get("private_key_pem", _PRIVATE_KEY):
        way = "`openssl pkcs8 -topk8 -nocrypt` makes it"
        raise connection.problem(f"its private_key_pem must be a text from {_PRIVATE_KEY} on; {way}")
    try:
        found.context()
    except (ssl.SSLError, ValueError):
        # Not as the cause: a traceback may show a piece of the key.
        named = ", ".join(key for key in CERTIFICATE_KEYS if key in extra)
        raise connection.problem(f"OpenSSL cannot read its {named}, or they do not belong together") from None
    return found


def oauth_client(connection: Connection) -> OAuthClient | None:
    """None where the connection names no `oauth_url`; login and password are the client's else."""
    extra = connection.extra
    url = extra.get("oauth_url")
    if url is None:
        unused = next((key for key in OAUTH_KEYS if key in extra), None)
        if unused is not None:
            raise connection.problem(f"it has an {unused} that nothing would use without an `oauth_url`")
        return None
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise connection.problem("its oauth_url must be a URL like https://login.example/oauth2/token")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise connection.problem("its oauth_url must begin with https: the client's secret goes there")
    if not (connection.login and connection.password):
        raise connection.problem("its oauth_url needs login and password: client id and client secret")
    return OAuthClient(
        url, connection.login, connection.password, extra.get("oauth_scope"), extra.get("oauth_ca_pem")
    )


@cache
def trusted_file(ca_pem: str) -> str:
    """A file with the authorities of the system and this one, for clients that want a path."""
    known = ssl.get_default_verify_paths().cafile
    system = Path(known).read_text(encoding="utf-8", errors="replace") if known else ""
    # Open as long as the process is.
    return _write_in_memory(os.memfd_create("cdc_lakehouse_trusted"), f"{system}\n{ca_pem}\n")


def trust_in_this_process(ca_pem: str) -> None:
    """For deltalake: no option of it names an authority, and its TLS asks for this variable as it connects.

    A second call with the same text changes nothing.
    """
    os.environ["SSL_CERT_FILE"] = trusted_file(ca_pem)


def is_loopback(host: str) -> bool:
    """Whether nobody else can be at `host`: an address of this machine, or a socket of its file system."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.startswith("/")
