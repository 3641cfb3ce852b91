"""One Kafka connection in the words of its two clients."""

from __future__ import annotations

import json

import pytest

from cdc_lakehouse.config.kafka_settings import java_kafka_settings, librdkafka_settings
from cdc_lakehouse.config.settings import Connection, Role, connection_from_environment
from cdc_lakehouse.contract import ENV_CONNECTION_KAFKA
from cdc_lakehouse.errors import MissingConnectionError, NotSupportedYetError
from certificates import authority  # type: ignore[import-not-found]

PEM = authority().pem
SHOWN = authority().client()


def kafka(**fields: object) -> Connection:
    document = {"host": "127.0.0.1:9092", **fields}
    return connection_from_environment(Role.KAFKA, {ENV_CONNECTION_KAFKA: json.dumps(document)})


def test_a_plain_kafka_needs_only_its_bootstrap_list():
    expected = {"bootstrap.servers": "127.0.0.1:9092", "security.protocol": "PLAINTEXT"}

    assert librdkafka_settings(kafka()) == expected
    assert java_kafka_settings(kafka()) == expected


@pytest.mark.parametrize(
    ("host", "port", "bootstrap"),
    [
        ("a:9092,b:9093", None, "a:9092,b:9093"),
        ("a:9092, b", 9094, "a:9092,b:9094"),
        ("a", "9092", "a:9092"),
        ("[::1]:9092", None, "[::1]:9092"),
        ("[::1]", 9092, "[::1]:9092"),
    ],
)
def test_the_port_goes_to_hosts_that_name_none(host, port, bootstrap):
    assert librdkafka_settings(kafka(host=host, port=port))["bootstrap.servers"] == bootstrap


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        (None, "its host must be a bootstrap list like kafka1.example:9092,kafka2.example:9092"),
        ("a:1,,b:1", "its host must be a bootstrap list like kafka1.example:9092,kafka2.example:9092"),
        ("a", "its host 'a' has no port"),
        ("a:x", "its host holds 'a:x', which is not host:port"),
        ("http://a:1", "its host holds 'http://a:1', which is not host:port"),
        ("me:pw@a:1", "its host holds 'a:1', which is not host:port"),
    ],
)
def test_a_host_that_is_no_bootstrap_list_is_refused(host, problem):
    with pytest.raises(MissingConnectionError) as caught:
        librdkafka_settings(kafka(host=host))

    assert caught.value.problem == problem


def test_a_login_is_encrypted_unless_the_connection_says_otherwise():
    assert librdkafka_settings(kafka(login="me", password="pw")) == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": "pw",
    }


def test_scram_with_a_ca_in_the_words_of_librdkafka():
    extra = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", "ca_pem": PEM}

    assert librdkafka_settings(kafka(login="me", password="pw", extra=extra)) == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": "pw",
        "ssl.ca.pem": PEM,
    }


def test_scram_with_a_ca_in_the_words_of_java():
    extra = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", "ca_pem": PEM}

    assert java_kafka_settings(kafka(login="me", password="pw", extra=extra)) == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": (
            'org.apache.kafka.common.security.scram.ScramLoginModule required username="me" password="pw";'
        ),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": PEM,
    }


def test_a_quote_in_a_password_does_not_end_the_jaas_value():
    extra = {"security_protocol": "SASL_PLAINTEXT"}
    settings = java_kafka_settings(kafka(login="me", password='a"b\\c', extra=extra))

    assert settings["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="me" password="a\\"b\\\\c";'
    )


def test_a_ca_alone_means_tls():
    assert librdkafka_settings(kafka(extra={"ca_pem": PEM}))["security.protocol"] == "SSL"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"extra": {"security_protocol": "TLS"}},
            "its security_protocol 'TLS' is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        (
            {"extra": {"security_protocol": "SASL_SSL"}},
            "its security_protocol SASL_SSL needs login and password",
        ),
        ({"login": "me"}, "its security_protocol SASL_SSL needs login and password"),
        (
            {"login": "me", "password": "pw", "extra": {"security_protocol": "PLAINTEXT"}},
            "it has a login that security_protocol PLAINTEXT would not use",
        ),
        (
            {"extra": {"security_protocol": "PLAINTEXT", "ca_pem": PEM}},
            "it has a ca_pem that security_protocol PLAINTEXT would not use",
        ),
        (
            {"login": "me", "password": "pw", "extra": {"sasl_mechanism": "OAUTHBEARER"}},
            "its sasl_mechanism OAUTHBEARER needs an `oauth_url`: who gives out tokens",
        ),
        (
            {
                "login": "me",
                "password": "pw",
                "extra": {"sasl_mechanism": "PLAIN", "oauth_url": "https://login.example/token"},
            },
            "it has an oauth_url that sasl_mechanism PLAIN would not use",
        ),
        (
            {"extra": {"sasl_mechanism": "PLAIN"}},
            "it has a sasl_mechanism that security_protocol PLAINTEXT would not use",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(fields, problem):
    with pytest.raises(MissingConnectionError) as caught:
        librdkafka_settings(kafka(**fields))

    assert caught.value.problem == problem


def test_a_sasl_mechanism_of_a_later_release_says_so():
    with pytest.raises(NotSupportedYetError) as caught:
        librdkafka_settings(kafka(login="me", password="pw", extra={"sasl_mechanism": "GSSAPI"}))

    assert caught.value.feature == (
        "the sasl_mechanism GSSAPI (known: OAUTHBEARER, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512)"
    )


def test_a_certificate_alone_means_tls_for_both_clients():
    connection = kafka(extra={"certificate_pem": SHOWN.certificate, "private_key_pem": SHOWN.private_key})

    assert librdkafka_settings(connection) == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "SSL",
        "ssl.certificate.pem": SHOWN.certificate,
        "ssl.key.pem": SHOWN.private_key,
    }
    assert java_kafka_settings(connection) == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": SHOWN.certificate,
        "ssl.keystore.key": SHOWN.private_key,
    }


def test_a_line_break_of_a_certificate_does_not_end_the_jaas_value():
    extra = {"oauth_url": "https://login.example/token", "oauth_ca_pem": PEM}
    settings = java_kafka_settings(kafka(login="me", password="pw", extra=extra))

    assert "\n" not in settings["sasl.jaas.config"]
    assert PEM.replace("\n", "\\n") in settings["sasl.jaas.config"]
