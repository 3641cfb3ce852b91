"""A connection with certificates or tokens reaches a real broker through both clients of a drain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest
from broker import Broker  # type: ignore[import-not-found]
from drained import Drained  # type: ignore[import-not-found]
from orders import OLD  # type: ignore[import-not-found]
from secure_broker import SecureKafka, running_broker  # type: ignore[import-not-found]

from cdc_lakehouse.config.kafka_settings import java_kafka_settings, librdkafka_settings
from cdc_lakehouse.config.settings import Connection, Role, connection_from_environment
from cdc_lakehouse.contract import ENV_CONNECTION_KAFKA
from cdc_lakehouse.errors import BrokerUnavailableError
from cdc_lakehouse.kafka.cluster import Cluster
from certificates import Authority, authority  # type: ignore[import-not-found]
from oauth_server import CLIENT_ID, CLIENT_SECRET, OAuthServer  # type: ignore[import-not-found]

OURS = authority().pem
SHOWN = authority().client()
STRANGER = Authority("somebody else")


@dataclass(frozen=True)
class SecureDrained(Drained):  # type: ignore[misc]
    """Drained with the settings that a job makes of its connection."""

    connection: Connection

    def _java(self) -> dict[str, str]:
        return java_kafka_settings(self.connection)


@dataclass(frozen=True)
class Connections:
    """Connections to the broker as Airflow hands them to a job."""

    kafka: SecureKafka
    oauth: OAuthServer

    def by_certificate(self, **extra: str) -> Connection:
        shown = {"certificate_pem": SHOWN.certificate, "private_key_pem": SHOWN.private_key}
        return self._read("kafka-tls", {**shown, **extra})

    def without_certificate(self) -> Connection:
        return self._read("kafka-tls", {})

    def by_token(self, *, secret: str = CLIENT_SECRET) -> Connection:
        oauth = {"oauth_url": f"{self.oauth.url}/token", "oauth_scope": "lake", "oauth_ca_pem": OURS}
        return self._read("kafka-token", oauth, login=CLIENT_ID, password=secret)

    def _read(self, listener: str, extra: dict[str, str], **login: str) -> Connection:
        document = {"host": self.kafka.site.address(listener), "extra": {"ca_pem": OURS, **extra}, **login}
        return connection_from_environment(Role.KAFKA, {ENV_CONNECTION_KAFKA: json.dumps(document)})


@pytest.fixture(scope="module")
def oauth(tmp_path_factory) -> Iterator[OAuthServer]:
    server = OAuthServer(authority(), tmp_path_factory.mktemp("oauth"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def connections(oauth, tmp_path_factory) -> Iterator[Connections]:
    folder = tmp_path_factory.mktemp("secure")
    with running_broker(folder, authority=authority(), oauth=oauth) as kafka:
        yield Connections(kafka, oauth)


def ask(connection: Connection) -> frozenset[str]:
    with closing(Cluster(librdkafka_settings(connection), timeout_seconds=5)) as cluster:
        return cluster.topic_names()


@pytest.mark.parametrize("way", ["by_certificate", "by_token"])
def test_records_are_drained_by_who_shows_a_certificate_or_a_token(way, connections, chain, topic):
    (key_id, key), (value_id, value) = OLD.schemas.items()
    chain.registry.register(topic, keys={key_id: key}, values={value_id: value})
    connection = getattr(connections, way)()
    with closing(Broker(librdkafka_settings(connection))) as broker:
        broker.create(topic)
        drained = SecureDrained(broker, chain, topic, connection)
        drained.send(1, 2, 3)

        drained.run()

    assert drained.offsets() == [(0, 0), (0, 1), (0, 2)]


def test_a_broker_of_an_authority_that_the_connection_does_not_name_is_not_trusted(connections):
    with pytest.raises(BrokerUnavailableError, match="certificate verify failed"):
        ask(connections.by_certificate(ca_pem=STRANGER.pem))


def test_a_client_without_a_certificate_is_turned_away_and_told_so(connections):
    with pytest.raises(BrokerUnavailableError, match="the connection has no certificate_pem"):
        ask(connections.without_certificate())


def test_a_client_of_an_authority_that_the_broker_does_not_know_is_turned_away(connections):
    shown = STRANGER.client()

    with pytest.raises(BrokerUnavailableError, match="SSL alert number"):
        ask(connections.by_certificate(certificate_pem=shown.certificate, private_key_pem=shown.private_key))


def test_a_client_whose_secret_is_refused_gets_no_token_and_shows_no_secret(connections, oauth):
    before = len(oauth.asked)

    with pytest.raises(BrokerUnavailableError) as caught:
        ask(connections.by_token(secret="wr0ng"))

    assert len(oauth.asked) == before
    assert "wr0ng" not in str(caught.value)
