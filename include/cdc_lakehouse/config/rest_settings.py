"""The connections to services that speak REST: the schema registry, and Kafka Connect, which is optional."""

from __future__ import annotations

from dataclasses import dataclass, field

from cdc_lakehouse.config.settings import Connection, url_of
from cdc_lakehouse.config.tls_settings import Certificates, OAuthClient, certificates, oauth_client


@dataclass(frozen=True, slots=True)
class RestSettings:
    """Address, login and certificates of a service."""

    url: str
    login: str | None = None
    password: str | None = field(default=None, repr=False)
    certificates: Certificates = field(default_factory=Certificates)
    oauth: OAuthClient | None = None
    """Client whose tokens replace login and password."""


def registry_settings(connection: Connection) -> RestSettings:
    """Return the settings of the registry. Raises for certificates that its URL would not use."""
    return _read_settings(connection, example="http://registry.example:8080/apis/ccompat/v7")


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
