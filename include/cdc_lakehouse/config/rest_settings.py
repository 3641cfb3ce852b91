"""The connections to services that speak REST: the schema registry, and Kafka Connect, which is optional."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from cdc_lakehouse.config.settings import GENERATION, Connection, url_of
from cdc_lakehouse.config.tls_settings import Certificates, OAuthClient, certificates, oauth_client

_GENERATION = re.compile("[a-z0-9]{1,20}")


@dataclass(frozen=True, slots=True)
class RestSettings:
    """Address, login and certificates of a service."""

    url: str
    login: str | None = None
    password: str | None = field(default=None, repr=False)
    certificates: Certificates = field(default_factory=Certificates)
    oauth: OAuthClient | None = None
    """Client whose tokens replace login and password."""
    generation: str | None = None
    """Tells a registry that was rebuilt from the one that had its URL before."""


def registry_settings(connection: Connection) -> RestSettings:
    """Return the settings of the registry. Raise for certificates that its URL would not use."""
    settings = _read_settings(connection, example="http://registry.example:8080/apis/ccompat/v7")
    generation = connection.extra.get(GENERATION)
    if generation is not None and not _GENERATION.fullmatch(generation):
        raise connection.problem("its generation must be 1 to 20 lower-case letters and digits, like 2")
    return replace(settings, generation=generation)


def connect_settings(connection: Connection) -> RestSettings:
    """Return the settings of Kafka Connect. Raises for certificates that its URL would not use."""
    return _read_settings(connection, example="http://connect.example:8083")


def _read_settings(connection: Connection, *, example: str) -> RestSettings:
    url = url_of(connection, example=example)
    shown = certificates(connection)
    if shown and not url.startswith("https:"):
        raise connection.problem("it has certificates that a URL with http:// would not use")
    return RestSettings(
        url=url,
        login=connection.login,
        password=connection.password,
        certificates=shown,
        oauth=oauth_client(connection),
    )
