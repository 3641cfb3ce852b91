"""The connection to Kafka Connect's REST interface, which is optional."""

from __future__ import annotations

from dataclasses import dataclass, field

from cdc_lakehouse.config.settings import Connection, url_of


@dataclass(frozen=True, slots=True)
class ConnectSettings:
    """Address and login of Kafka Connect."""

    url: str
    login: str | None = None
    password: str | None = field(default=None, repr=False)


def connect_settings(connection: Connection) -> ConnectSettings:
    url = url_of(connection, example="http://connect.example:8083")
    return ConnectSettings(url=url, login=connection.login, password=connection.password)
