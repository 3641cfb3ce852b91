"""The connection to a source: what it must have, and what it says when it has not."""

from __future__ import annotations

import pytest

from cdc_lakehouse.config.settings import Connection, Role
from cdc_lakehouse.config.source_settings import SourceSettings, source_settings
from cdc_lakehouse.errors import MissingConnectionError


def connection(*, host: str | None = "db", login: str | None = "reader", **extra: str) -> Connection:
    return Connection(Role.SOURCE, host=host, login=login, password="s3cret", extra=extra)


def test_what_is_not_told_is_usual():
    assert source_settings(connection(database="shop")) == SourceSettings(
        host="db",
        port=5432,
        database="shop",
        login="reader",
        password="s3cret",
        sslmode="verify-full",
        sslrootcert="system",
    )


@pytest.mark.parametrize(
    ("host", "extra", "expected"),
    [
        ("db", {}, ("verify-full", "system", None)),
        ("db", {"sslrootcert": "/etc/ca.pem"}, ("verify-full", "/etc/ca.pem", None)),
        ("db", {"sslmode": "verify-ca", "sslrootcert": "/etc/ca.pem"}, ("verify-ca", "/etc/ca.pem", None)),
        ("db", {"sslmode": "require"}, ("require", None, None)),
        ("db", {"sslmode": "prefer"}, ("prefer", None, "!password")),
        ("10.0.0.7", {}, ("verify-full", "system", None)),
        ("localhost.example", {}, ("verify-full", "system", None)),
        ("127.0.0.1", {}, ("prefer", None, "!password")),
        ("::1", {}, ("prefer", None, "!password")),
        ("localhost", {}, ("prefer", None, "!password")),
        ("/var/run/postgresql", {}, ("prefer", None, "!password")),
    ],
)
def test_a_server_beyond_this_machine_must_show_who_it_is(host, extra, expected):
    found = source_settings(connection(host=host, database="shop", **extra))

    assert (found.sslmode, found.sslrootcert, found.require_auth) == expected


def test_no_secret_is_shown():
    assert "s3cret" not in repr(source_settings(connection(database="shop")))


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (connection(), "its extra has no `database`"),
        (connection(host=None, database="shop"), "it has no host"),
        (connection(login=None, database="shop"), "it has no login"),
        (connection(database="shop", sslmode="verify-ca"), "its sslmode verify-ca needs an sslrootcert"),
        (connection(database="shop", sslmode="on"), "its sslmode 'on' is none of"),
    ],
)
def test_what_is_wrong_is_said_with_the_name_of_the_variable(found, problem):
    with pytest.raises(MissingConnectionError, match=problem) as refused:
        source_settings(found)

    assert refused.value.connection == "CDC_LAKEHOUSE_CONN_SOURCE"
