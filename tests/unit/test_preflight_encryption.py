"""`make check` warns where a login or data can be read on the way, or given to somebody else."""

from __future__ import annotations

import pytest

from cdc_lakehouse.config.rest_settings import RestSettings
from cdc_lakehouse.config.source_settings import SourceSettings
from cdc_lakehouse.config.storage_settings import S3Access, StorageSettings
from cdc_lakehouse.preflight.encryption import (
    connect_encryption,
    kafka_encryption,
    lake_encryption,
    registry_encryption,
    source_encryption,
)


@pytest.mark.parametrize(
    ("host", "sslmode", "expected"),
    [
        ("db.example", "verify-full", []),
        ("127.0.0.1", "prefer", []),
        ("db.example", "prefer", ["its rows in the clear"]),
        ("db.example", "disable", ["its rows in the clear"]),
        ("db.example", "require", ["its rows and its login"]),
        ("db.example", "verify-ca", ["its rows and its login"]),
    ],
)
def test_a_source_that_may_be_somebody_else_is_warned_of(host, sslmode, expected):
    settings = SourceSettings(host=host, port=5432, database="shop", login="reader", sslmode=sslmode)

    found = list(source_encryption(settings))

    assert [(each.level, each.sentence.rpartition(" and get ")[2]) for each in found] == [
        ("warning", what) for what in expected
    ]


@pytest.mark.parametrize(
    ("bootstrap", "protocol", "mechanism", "expected"),
    [
        ("127.0.0.1:9092,[::1]:9092", "SASL_PLAINTEXT", "PLAIN", []),
        ("kafka.example:9092", "SASL_SSL", "PLAIN", []),
        ("kafka.example:9092", "SSL", None, []),
        ("127.0.0.1:9092,kafka.example:9092", "PLAINTEXT", None, ["every record in"]),
        ("kafka.example:9092", "SASL_PLAINTEXT", "PLAIN", ["every record and its login in"]),
        ("kafka.example:9092", "SASL_PLAINTEXT", "SCRAM-SHA-256", ["every record in"]),
    ],
)
def test_a_kafka_that_is_not_encrypted_is_warned_of(bootstrap, protocol, mechanism, expected):
    settings = {"bootstrap.servers": bootstrap, "security.protocol": protocol}
    found = kafka_encryption({**settings, **({"sasl.mechanism": mechanism} if mechanism else {})})

    sentences = [each.sentence for each in found]
    assert [sentence.partition("sends ")[2].partition(" the clear")[0] for sentence in sentences] == expected


@pytest.mark.parametrize(
    ("url", "login", "warns"),
    [
        ("https://registry.example", "me", False),
        ("http://127.0.0.1:8081", "me", False),
        ("http://registry.example", None, False),
        ("http://registry.example", "me", True),
    ],
)
def test_a_login_that_goes_to_a_registry_in_the_clear_is_warned_of(url, login, warns):
    assert bool(list(registry_encryption(RestSettings(url, login, "pw")))) is warns


@pytest.mark.parametrize(
    ("url", "login", "expected"),
    [
        ("https://connect.example", "me", []),
        ("http://127.0.0.1:8083", "me", []),
        ("http://connect.example:8083", None, ["the settings"]),
        ("http://connect.example:8083", "me", ["its login and the settings"]),
    ],
)
def test_a_kafka_connect_that_is_not_encrypted_is_warned_of(url, login, expected):
    found = connect_encryption(RestSettings(url, login, "pw"))

    assert [each.sentence.partition(" of connectors")[0] for each in found] == expected


@pytest.mark.parametrize(
    ("endpoint", "warns"),
    [("https://s3.example", False), ("http://127.0.0.1:8333", False), ("http://s3.example:8333", True)],
)
def test_a_bucket_that_is_not_encrypted_is_warned_of(endpoint, warns):
    access = S3Access("lake", endpoint, "us-east-1", "key", "secret")

    assert bool(list(lake_encryption(StorageSettings("s3a://lake/x", access)))) is warns
    assert list(lake_encryption(StorageSettings("file:///lake"))) == []
