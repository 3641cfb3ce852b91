"""librdkafka asks an OAuth server for its token, on a real socket, before it talks to any broker."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from cdc_lakehouse.config.kafka_settings import librdkafka_settings
from cdc_lakehouse.config.settings import Role, connection_from_environment
from cdc_lakehouse.contract import ENV_CONNECTION_KAFKA
from cdc_lakehouse.errors import BrokerUnavailableError
from cdc_lakehouse.kafka.cluster import Cluster
from certificates import Authority, authority  # type: ignore[import-not-found]
from oauth_server import CLIENT_ID, CLIENT_SECRET, OAuthServer  # type: ignore[import-not-found]

NOBODY = "127.0.0.1:9"


@pytest.fixture
def oauth(tmp_path) -> Iterator[OAuthServer]:
    server = OAuthServer(authority(), tmp_path)
    yield server
    server.stop()


def cluster(oauth: OAuthServer, *, trusted: Authority) -> Cluster:
    """Of a client with a certificate and a token, at an address where no broker is."""
    shown = authority().client()
    extra = {
        "ca_pem": authority().pem,
        "certificate_pem": shown.certificate,
        "private_key_pem": shown.private_key,
        "oauth_url": f"{oauth.url}/token",
        "oauth_scope": "lake",
        "oauth_ca_pem": trusted.pem,
    }
    document = {"host": NOBODY, "login": CLIENT_ID, "password": CLIENT_SECRET, "extra": extra}
    connection = connection_from_environment(Role.KAFKA, {ENV_CONNECTION_KAFKA: json.dumps(document)})
    return Cluster(librdkafka_settings(connection), timeout_seconds=4)


def test_the_client_shows_its_secret_to_the_server_that_the_connection_names(oauth):
    with pytest.raises(BrokerUnavailableError):
        cluster(oauth, trusted=authority()).topic_names()

    assert oauth.asked == [{"grant_type": ["client_credentials"], "scope": ["lake"]}]


def test_a_server_of_an_authority_that_nobody_named_gets_no_secret(oauth):
    with pytest.raises(BrokerUnavailableError) as caught:
        cluster(oauth, trusted=Authority("somebody else")).topic_names()

    assert oauth.asked == []
    assert CLIENT_SECRET not in str(caught.value)
