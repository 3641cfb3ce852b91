"""What the environment says: where pipelines lie, how Kafka, registry, lake and source are reached."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cdc_lakehouse.contract import (
    ENV_CONNECTION_CONNECT,
    ENV_CONNECTION_KAFKA,
    ENV_CONNECTION_REGISTRY,
    ENV_CONNECTION_SOURCE,
    ENV_CONNECTION_STORAGE,
    ENV_PIPELINES,
)
from cdc_lakehouse.errors import MissingConnectionError

_BESIDE_THE_PACKAGE = Path(__file__).resolve().parents[2] / "pipelines"


class Role(StrEnum):
    """What a connection is for."""

    KAFKA = "kafka"
    REGISTRY = "registry"
    STORAGE = "storage"
    SOURCE = "source"
    CONNECT = "connect"


_VARIABLE = {
    Role.KAFKA: ENV_CONNECTION_KAFKA,
    Role.REGISTRY: ENV_CONNECTION_REGISTRY,
    Role.STORAGE: ENV_CONNECTION_STORAGE,
    Role.SOURCE: ENV_CONNECTION_SOURCE,
    Role.CONNECT: ENV_CONNECTION_CONNECT,
}
CERTIFICATE_KEYS = ("ca_pem", "certificate_pem", "private_key_pem")
OAUTH_KEYS = ("oauth_url", "oauth_scope", "oauth_ca_pem")
GENERATION = "generation"
_EXTRA_KEYS = {
    Role.KAFKA: ("security_protocol", "sasl_mechanism", *CERTIFICATE_KEYS, *OAUTH_KEYS),
    Role.REGISTRY: (*CERTIFICATE_KEYS, *OAUTH_KEYS, GENERATION),
    Role.STORAGE: ("root", "endpoint", "region", "ca_pem", "mask_secret"),
    Role.SOURCE: ("database", "sslmode", "sslrootcert", "slot", "offsets_topic"),
    Role.CONNECT: (*CERTIFICATE_KEYS, *OAUTH_KEYS),
}
_KEYS = ("host", "port", "login", "password", "extra")


@dataclass(frozen=True, slots=True)
class Connection:
    """One way to a service. Its `repr` holds no secret, so it may appear in a traceback."""

    role: Role
    host: str | None = None
    port: int | None = None
    login: str | None = None
    password: str | None = field(default=None, repr=False)
    extra: Mapping[str, str] = field(default_factory=dict, repr=False)

    def problem(self, sentence: str) -> MissingConnectionError:
        """The error for this connection; it names the variable that a person can look at."""
        return MissingConnectionError(connection=_VARIABLE[self.role], problem=sentence)


@dataclass(frozen=True, slots=True)
class JobConnections:
    """What ingest and merge may have to reach."""

    kafka: Connection
    registry: Connection
    storage: Connection


def pipelines_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where `<pipeline>.yaml` lies: `CDC_LAKEHOUSE_PIPELINES`, else beside the package."""
    named = (os.environ if environ is None else environ).get(ENV_PIPELINES)
    return Path(named) if named else _BESIDE_THE_PACKAGE


def connections_from_environment(environ: Mapping[str, str] | None = None) -> JobConnections:
    """All three of them; `MissingConnectionError` for the first that is missing or malformed."""
    return JobConnections(
        kafka=connection_from_environment(Role.KAFKA, environ),
        registry=connection_from_environment(Role.REGISTRY, environ),
        storage=connection_from_environment(Role.STORAGE, environ),
    )


def optional_connection(role: Role, environ: Mapping[str, str] | None = None) -> Connection | None:
    """Return the connection, None where it is not set. A malformed one raises `MissingConnectionError`."""
    is_set = bool((os.environ if environ is None else environ).get(_VARIABLE[role]))
    return connection_from_environment(role, environ) if is_set else None


def connection_from_environment(role: Role, environ: Mapping[str, str] | None = None) -> Connection:
    """One connection, for jobs that need no other."""
    variable = _VARIABLE[role]
    text = (os.environ if environ is None else environ).get(variable)
    nobody = Connection(role)
    if not text:
        raise nobody.problem("the environment variable is not set")
    try:
        document: object = json.loads(text)
    except ValueError as error:
        # Not `from error`: a JSONDecodeError carries the whole text, password included.
        position = getattr(error, "pos", 0)
        raise nobody.problem(f"it is not JSON (character {position})") from None
    if not isinstance(document, dict):
        raise nobody.problem('it must be a JSON object like {"host": "…"}')
    _refuse_unknown(nobody, document, _KEYS)
    return Connection(
        role=role,
        host=_text(nobody, document, "host"),
        port=_port(nobody, document.get("port")),
        login=_text(nobody, document, "login"),
        password=_text(nobody, document, "password"),
        extra=_extra(nobody, document.get("extra")),
    )


def url_of(connection: Connection, *, example: str) -> str:
    """Return the connection's host as a URL with its port, without a login and without a slash at its end."""
    try:
        parts = urlsplit(connection.host or "")
        own_port = parts.port
    except ValueError as error:
        raise connection.problem(f"its host is not a URL: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise connection.problem(f"its host must be a URL like {example}")
    if parts.username is not None or parts.password is not None:
        raise connection.problem("its URL holds a login; put it into login and password")
    if own_port is not None and connection.port not in (None, own_port):
        raise connection.problem(f"its URL says port {own_port}, its port says {connection.port}")
    if own_port is None and connection.port is not None:
        parts = parts._replace(netloc=f"{parts.netloc}:{connection.port}")
    return parts.geturl().rstrip("/")


def _refuse_unknown(connection: Connection, found: Mapping[str, object], known: tuple[str, ...]) -> None:
    """A misspelt security_protocol that is ignored would send a password in the clear."""
    for key in found:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            hint = f"did you mean `{close[0]}`?" if close else f"known: {', '.join(known) or 'none'}"
            raise connection.problem(f"unknown key `{key}`; {hint}")


def _text(connection: Connection, document: Mapping[str, Any], key: str) -> str | None:
    value = document.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise connection.problem(f"its {key} must be text")
    return value


def _port(connection: Connection, value: object) -> int | None:
    if value is None or value == "":
        return None
    text = str(value)
    if isinstance(value, bool) or not text.isdecimal() or not 0 < int(text) < 65536:
        raise connection.problem(f"its port {text!r} is not a port")
    return int(text)


def _extra(connection: Connection, value: object) -> Mapping[str, str]:
    if value is None or value == "":
        return {}
    if not isinstance(value, dict):
        raise connection.problem("its extra must be a JSON object")
    known = _EXTRA_KEYS[connection.role]
    _refuse_unknown(connection, value, known)
    found = {key: _text(connection, value, key) for key in known}
    return {key: text for key, text in found.items() if text is not None}
