"""A broker that talks TLS: at one port to clients with a certificate, at another to clients with a token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from confluent_kafka import KafkaException

from artifacts.java import find_java
from certificates import Authority  # type: ignore[import-not-found]
from local_stack.component import Site
from local_stack.kafka import Kafka
from local_stack.layout import Layout
from local_stack.ports import choose_ports
from local_stack.process import Launch, ProcessRecord, last_words, spawn, wait_until
from local_stack.secrets_file import Secrets
from oauth_server import OAuthServer  # type: ignore[import-not-found]

LISTENERS = {"kafka": 9092, "kafka-controller": 9093, "kafka-tls": 9094, "kafka-token": 9095}
SECONDS = 90.0
_PACKAGE = "org.apache.kafka.common.security.oauthbearer"


class SecureKafka(Kafka):
    """The broker of the local stack with two more listeners."""

    def __init__(self, site: Site, authority: Authority, oauth: OAuthServer) -> None:
        super().__init__(site)
        self._authority = authority
        self._oauth = oauth

    def launch(self) -> Launch:
        usual = super().launch()
        java, *rest = usual.command
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self._oauth.url}/keys"
        return replace(usual, command=[java, allowed, *rest])

    def answers(self, process: ProcessRecord) -> bool:
        try:
            return self.is_healthy(process)
        except KafkaException:
            return False

    def _settings(self) -> dict[str, str]:
        shown, authority = self._authority.server(), _as_line(self._authority.pem)
        tls, token = self.site.address("kafka-tls"), self.site.address("kafka-token")
        settings = super()._settings()
        settings["listeners"] += f",TLS://{tls},TOKEN://{token}"
        settings["advertised.listeners"] += f",TLS://{tls},TOKEN://{token}"
        settings["listener.security.protocol.map"] += ",TLS:SSL,TOKEN:SASL_SSL"
        # Escaped once more, for the quoted value inside the line.
        trusted = f'ssl.truststore.type="PEM" ssl.truststore.certificates="{authority}"'.replace("\\", "\\\\")
        return {
            **settings,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _as_line(shown.certificate),
            "ssl.keystore.key": _as_line(shown.private_key),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": authority,
            "listener.name.tls.ssl.client.auth": "required",
            "listener.name.token.sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.token.oauthbearer.sasl.server.callback.handler.class": (
                f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler"
            ),
            # Without the mechanism in the name: with it Kafka takes a list for a text, and ends.
            "listener.name.token.sasl.oauthbearer.jwks.endpoint.url": f"{self._oauth.url}/keys",
            "listener.name.token.sasl.oauthbearer.expected.audience": "lakehouse",
            "listener.name.token.oauthbearer.sasl.jaas.config": (
                f"{_PACKAGE}.OAuthBearerLoginModule required "
                # The broker logs in, too, though it shows its token to nobody.
                f'unsecuredLoginStringClaim_sub="broker" {trusted};'
            ),
        }


@contextmanager
def running_broker(folder: Path, *, authority: Authority, oauth: OAuthServer) -> Iterator[SecureKafka]:
    layout = Layout(folder)
    ports = choose_ports({}, listeners=LISTENERS, seed=str(folder)).ports
    kafka = SecureKafka(Site(layout, ports, Secrets.drawn(), find_java()), authority, oauth)
    kafka.prepare()
    process, record = spawn(kafka.launch(), log=kafka.log, owned=True)
    try:
        wait_until(lambda: process.poll() is not None or kafka.answers(record), SECONDS)
        assert process.poll() is None, last_words(kafka.log)
        yield kafka
    finally:
        kafka.stop(record)
        process.wait()


def _as_line(pem: str) -> str:
    """As a value of a file of properties."""
    return pem.replace("\n", "\\n")
