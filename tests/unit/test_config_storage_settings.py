"""Where the lake is: a folder or a bucket, spelled in one way; what is wrong names the connection."""

from __future__ import annotations

import pytest

from cdc_lakehouse.config.settings import Connection, Role
from cdc_lakehouse.config.storage_settings import (
    S3Access,
    deltalake_options,
    s3a_settings,
    storage_root,
    storage_settings,
)
from cdc_lakehouse.errors import MissingConnectionError, NotSupportedYetError

ENDPOINT = "http://store.example:8333"
PASSWORD = "s3cret"


def storage(root: str) -> Connection:
    return Connection(Role.STORAGE, extra={"root": root})


def bucket(root: str = "s3a://bucket/lake", *, login: str | None = "me", **extra: str) -> Connection:
    return Connection(
        Role.STORAGE, login=login, password=PASSWORD, extra={"root": root, "endpoint": ENDPOINT, **extra}
    )


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ("file:///var/lake", "file:///var/lake"),
        ("file:///var/lake/", "file:///var/lake"),
        ("file:/var/lake", "file:///var/lake"),
        ("file://localhost/var/lake", "file:///var/lake"),
    ],
)
def test_the_root_of_the_lake_has_one_spelling(root, expected):
    assert storage_root(storage(root)) == expected


@pytest.mark.parametrize(
    "root",
    [
        "",
        "/var/lake",
        "lake",
        "file:lake",
        "file:///",
        "file://host/lake",
        "file:///a/../b",
        "file:///a b",
        "file:///a?b",
        "file:///a%20b",
        "file:///a#b",
    ],
)
def test_a_root_that_is_not_an_absolute_file_uri_is_refused(root):
    with pytest.raises(MissingConnectionError) as caught:
        storage_root(storage(root))

    assert caught.value.connection == "CDC_LAKEHOUSE_CONN_STORAGE"


@pytest.mark.parametrize("root", ["abfss://c@a/lake", "gs://b", "hdfs://n/lake"])
def test_other_stores_are_refused_until_they_are_tested(root):
    with pytest.raises(NotSupportedYetError) as caught:
        storage_root(storage(root))

    assert "only file: and s3a: were tested" in caught.value.feature


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ("s3a://bucket/lake", "s3a://bucket/lake"),
        ("s3a://bucket/a/lake/", "s3a://bucket/a/lake"),
        ("s3a://bucket", "s3a://bucket"),
        ("s3a://bucket/", "s3a://bucket"),
    ],
)
def test_a_bucket_has_one_spelling(root, expected):
    assert storage_root(bucket(root)) == expected


@pytest.mark.parametrize("root", ["s3a:///lake", "s3a://Bucket/lake", "s3a://b/lake", "s3a://bucket/a/../b",
                                  "s3a://me:pw@bucket/lake", "s3a://bucket/a b", "s3://b/c"])  # fmt: skip
def test_a_bucket_that_is_spelled_oddly_is_refused(root):
    with pytest.raises(MissingConnectionError) as caught:
        storage_root(bucket(root))

    assert caught.value.connection == "CDC_LAKEHOUSE_CONN_STORAGE"


@pytest.mark.parametrize(
    "endpoint", ["", "store.example", "ftp://store", "http://me:pw@store", "http://s/x?y"]
)
def test_a_bucket_needs_an_endpoint(endpoint):
    with pytest.raises(MissingConnectionError) as caught:
        storage_root(bucket(endpoint=endpoint))

    assert "`endpoint`" in caught.value.problem


def test_a_bucket_needs_a_login():
    with pytest.raises(MissingConnectionError) as caught:
        storage_root(bucket(login=None))

    assert "access key and secret key" in caught.value.problem


@pytest.fixture
def access() -> S3Access:
    found = storage_settings(bucket(region="eu-central-1")).s3
    assert found is not None
    return found


def test_the_way_to_a_bucket_shows_no_password(access):
    assert PASSWORD not in repr(access)
    assert PASSWORD not in repr(storage_settings(bucket()))


def test_spark_is_told_no_login(access):
    settings = s3a_settings(access)

    assert settings["spark.hadoop.fs.s3a.endpoint"] == ENDPOINT
    assert settings["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "false"
    assert not {"me", PASSWORD} & set(settings.values())


def test_deltalake_creates_with_a_condition(access):
    options = deltalake_options(access)

    assert options["aws_conditional_put"] == "etag"
    assert options["AWS_ALLOW_HTTP"] == "true"
    assert options["AWS_REGION"] == "eu-central-1"
