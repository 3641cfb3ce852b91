"""Connections come from the environment; what is wrong with one names its variable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdc_lakehouse.config.rest_settings import registry_settings
from cdc_lakehouse.config.settings import (
    Connection,
    Role,
    connection_from_environment,
    connections_from_environment,
    pipelines_folder,
)
from cdc_lakehouse.errors import MissingConnectionError

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
VARIABLE = {
    Role.KAFKA: "CDC_LAKEHOUSE_CONN_KAFKA",
    Role.REGISTRY: "CDC_LAKEHOUSE_CONN_REGISTRY",
    Role.STORAGE: "CDC_LAKEHOUSE_CONN_STORAGE",
    Role.SOURCE: "CDC_LAKEHOUSE_CONN_SOURCE",
}


def read(role: Role, document: object) -> Connection:
    return connection_from_environment(role, {VARIABLE[role]: json.dumps(document)})


def test_the_three_connections_are_read_by_role():
    found = connections_from_environment(
        {
            "CDC_LAKEHOUSE_CONN_KAFKA": '{"host": "k:9092", "port": null, "login": "", "extra": null}',
            "CDC_LAKEHOUSE_CONN_REGISTRY": '{"host": "http://r", "login": "me", "password": "pw"}',
            "CDC_LAKEHOUSE_CONN_STORAGE": '{"extra": {"root": "file:///lake"}}',
        }
    )

    assert found.kafka == Connection(Role.KAFKA, host="k:9092")
    assert found.registry == Connection(Role.REGISTRY, host="http://r", login="me", password="pw")
    assert found.storage == Connection(Role.STORAGE, extra={"root": "file:///lake"})


def test_the_repr_of_a_connection_shows_no_secret():
    text = repr(
        read(Role.KAFKA, {"host": "k:1", "login": "me", "password": "s3cret", "extra": {"ca_pem": PEM}})
    )

    assert text == "Connection(role=<Role.KAFKA: 'kafka'>, host='k:1', port=None, login='me')"


def test_the_repr_of_registry_settings_shows_no_secret():
    connection = read(Role.REGISTRY, {"host": "http://r", "login": "me", "password": "s3cret"})

    assert "s3cret" not in repr(registry_settings(connection))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the environment variable is not set"),
        ("{", "it is not JSON (character 1)"),
        ('["a"]', 'it must be a JSON object like {"host": "…"}'),
        ('{"hots": "a"}', "unknown key `hots`; did you mean `host`?"),
        ('{"host": 5}', "its host must be text"),
        ('{"port": 70000}', "its port '70000' is not a port"),
        ('{"port": true}', "its port 'True' is not a port"),
        ('{"extra": "a"}', "its extra must be a JSON object"),
        (
            '{"extra": {"security_protcol": "SSL"}}',
            "unknown key `security_protcol`; did you mean `security_protocol`?",
        ),
        (
            '{"extra": {"zzz": "1"}}',
            "unknown key `zzz`; known: security_protocol, sasl_mechanism, ca_pem, certificate_pem, "
            "private_key_pem, oauth_url, oauth_scope, oauth_ca_pem",
        ),
    ],
)
def test_a_connection_that_cannot_be_read_names_its_variable(text, problem):
    with pytest.raises(MissingConnectionError) as caught:
        connection_from_environment(Role.KAFKA, {"CDC_LAKEHOUSE_CONN_KAFKA": text})

    assert (caught.value.connection, caught.value.problem) == ("CDC_LAKEHOUSE_CONN_KAFKA", problem)


def test_broken_json_does_not_carry_its_password_into_the_traceback():
    with pytest.raises(MissingConnectionError) as caught:
        connection_from_environment(Role.KAFKA, {"CDC_LAKEHOUSE_CONN_KAFKA": '{"password": "s3cret"'})

    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "port", "url"),
    [
        ("http://r:8080/apis/ccompat/v7/", None, "http://r:8080/apis/ccompat/v7"),
        ("http://r/apis", 8080, "http://r:8080/apis"),
        ("https://r", None, "https://r"),
        ("http://r:8080", 8080, "http://r:8080"),
    ],
)
def test_the_registry_has_one_url(host, port, url):
    assert registry_settings(read(Role.REGISTRY, {"host": host, "port": port})).url == url


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        (None, "its host must be a URL like http://registry.example:8080/apis/ccompat/v7"),
        ("r:8080", "its host must be a URL like http://registry.example:8080/apis/ccompat/v7"),
        ("http://me:pw@r", "its URL holds a login; put it into login and password"),
        ("http://r:1", "its URL says port 1, its port says 2"),
        ("http://r:x", "its host is not a URL: Port could not be cast to integer value as 'x'"),
    ],
)
def test_a_registry_that_is_no_url_is_refused(host, problem):
    with pytest.raises(MissingConnectionError) as caught:
        registry_settings(read(Role.REGISTRY, {"host": host, "port": 2}))

    assert caught.value.problem == problem


def test_pipelines_lie_where_the_environment_says():
    assert pipelines_folder({"CDC_LAKEHOUSE_PIPELINES": "/srv/pipelines"}) == Path("/srv/pipelines")


def test_pipelines_lie_beside_the_package_by_default():
    assert pipelines_folder({}) == Path(__file__).parents[2] / "include" / "pipelines"
