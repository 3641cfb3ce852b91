"""Kafka Connect behind TLS, on a real socket: whom the client trusts, and how it shows who it is."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from registry_server import FakeRegistry as RestServer  # type: ignore[import-not-found]

from cdc_lakehouse.config.rest_settings import connect_settings
from cdc_lakehouse.config.settings import Connection, Role, connection_from_environment
from cdc_lakehouse.connect.connectors import read_connectors
from cdc_lakehouse.contract import ENV_CONNECTION_CONNECT
from cdc_lakehouse.errors import ConnectUnavailableError, MissingConnectionError
from certificates import Authority, authority  # type: ignore[import-not-found]
from oauth_server import CLIENT_ID, CLIENT_SECRET, OAuthServer  # type: ignore[import-not-found]

OURS = authority().pem
ASKED = "/connectors?expand=info&expand=status"
RUNNING = {"state": "RUNNING"}
ANSWER = {
    "shop": {
        "info": {"config": {"topic.prefix": "shop"}},
        "status": {"connector": RUNNING, "tasks": [{"id": 0, **RUNNING}]},
    }
}


@pytest.fixture(params=[False])
def connect(request, tmp_path) -> Iterator[RestServer]:
    """Behind a certificate of our authority; with True it talks to clients that show one, too."""
    server = RestServer(authority().server_context(tmp_path, asks_clients=request.param))
    server.answers[ASKED] = ANSWER
    yield server
    server.stop()


def connection(server: RestServer, *, login: str = "", password: str = "", **extra: str) -> Connection:
    document = {"host": server.url, "login": login, "password": password, "extra": extra}
    return connection_from_environment(Role.CONNECT, {ENV_CONNECTION_CONNECT: json.dumps(document)})


def names(connection: Connection) -> list[str]:
    return [connector.name for connector in read_connectors(connection)]


def test_a_connect_of_a_private_authority_is_trusted_where_the_connection_names_it(connect):
    assert names(connection(connect, ca_pem=OURS)) == ["shop"]


@pytest.mark.parametrize("extra", [{}, {"ca_pem": Authority("somebody else").pem}])
def test_a_connect_that_nobody_vouches_for_gets_no_login(extra, connect):
    with pytest.raises(ConnectUnavailableError) as caught:
        names(connection(connect, login="me", password="s3cret", **extra))

    assert caught.value.reason.startswith("its certificate is not trusted (")
    assert connect.calls == []


@pytest.mark.parametrize("connect", [True], indirect=True)
def test_a_connect_that_asks_for_a_certificate_gets_the_one_of_the_connection(connect):
    shown = authority().client()
    extra = {"certificate_pem": shown.certificate, "private_key_pem": shown.private_key}

    assert names(connection(connect, ca_pem=OURS, **extra)) == ["shop"]
    with pytest.raises(ConnectUnavailableError):
        names(connection(connect, ca_pem=OURS))


def test_a_token_is_shown_in_place_of_the_login(connect, tmp_path):
    (tmp_path / "oauth").mkdir()
    oauth = OAuthServer(authority(), tmp_path / "oauth")
    extra = {"ca_pem": OURS, "oauth_url": f"{oauth.url}/token", "oauth_ca_pem": OURS}

    found = names(connection(connect, login=CLIENT_ID, password=CLIENT_SECRET, **extra))
    oauth.stop()

    assert found == ["shop"]
    assert [each.partition(" ")[0] for each in connect.authorizations] == ["Bearer"]


def test_certificates_that_a_url_in_the_clear_would_not_use_are_refused():
    plain = Connection(Role.CONNECT, host="http://connect.example:8083", extra={"ca_pem": OURS})

    with pytest.raises(MissingConnectionError, match="certificates that a URL with http:// would not use"):
        connect_settings(plain)
