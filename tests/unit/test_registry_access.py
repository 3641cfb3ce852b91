"""A registry behind TLS, on a real socket: whom the client trusts, and how it shows who it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from registry_server import FakeRegistry  # type: ignore[import-not-found]

from cdc_lakehouse.config.rest_settings import registry_settings
from cdc_lakehouse.config.settings import Connection, Role, connection_from_environment
from cdc_lakehouse.contract import ENV_CONNECTION_REGISTRY
from cdc_lakehouse.errors import MissingConnectionError, RegistryUnavailableError
from cdc_lakehouse.preflight.greeting import greet_registry
from cdc_lakehouse.registry.client import SchemaRegistry
from cdc_lakehouse.rest_client import http_client
from certificates import Authority, authority  # type: ignore[import-not-found]
from oauth_server import CLIENT_ID, CLIENT_SECRET, OAuthServer  # type: ignore[import-not-found]

OURS = authority().pem
SHOWN = authority().client()
ANSWER = {"schema": '"string"'}


@pytest.fixture
def fake(tmp_path) -> Iterator[FakeRegistry]:
    """Behind a certificate of our authority; it asks nobody for one."""
    registry = FakeRegistry(authority().server_context(tmp_path))
    registry.answers["/schemas/ids/5"], registry.answers["/subjects"] = ANSWER, []
    yield registry
    registry.stop()


@pytest.fixture
def choosy(tmp_path) -> Iterator[FakeRegistry]:
    """It talks to clients with a certificate of our authority only."""
    registry = FakeRegistry(authority().server_context(tmp_path, asks_clients=True))
    registry.answers["/schemas/ids/5"] = ANSWER
    yield registry
    registry.stop()


@pytest.fixture(scope="module")
def oauth(tmp_path_factory) -> Iterator[OAuthServer]:
    server = OAuthServer(authority(), tmp_path_factory.mktemp("oauth"))
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def nobody_asked(oauth) -> None:
    oauth.asked.clear()
    oauth.status, oauth.seconds = 200, 3600


def connection(fake: FakeRegistry, *, login: str = "", password: str = "", **extra: str) -> Connection:
    document = {"host": fake.url, "login": login, "password": password, "extra": extra}
    return connection_from_environment(Role.REGISTRY, {ENV_CONNECTION_REGISTRY: json.dumps(document)})


def with_tokens(fake: FakeRegistry, oauth: OAuthServer, **changed: str) -> Connection:
    usual = {
        "login": CLIENT_ID,
        "password": CLIENT_SECRET,
        "ca_pem": OURS,
        "oauth_url": f"{oauth.url}/token",
        "oauth_scope": "lake",
        "oauth_ca_pem": OURS,
    }
    return connection(fake, **{**usual, **changed})


def asked(connection: Connection, *, times: int = 1) -> Any:
    with SchemaRegistry(registry_settings(connection), attempts=1, timeout_seconds=5) as registry:
        found = [registry.for_table().schema(5) for _ in range(times)]
    return found[-1]


class CountedBody(httpx.SyncByteStream):
    """A body that says how many of its pieces were read."""

    def __init__(self) -> None:
        self.read = 0

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(3):
            self.read += 1
            yield b" " * 100


@pytest.mark.parametrize("with_token", [False, True], ids=["no login", "tokens"])
def test_no_piece_of_an_answer_is_read_before_the_client_asks_for_it(with_token, fake, oauth):
    """The limit on its length counts while it is read, so nothing may have read it before."""
    refused, moved, last = CountedBody(), CountedBody(), CountedBody()
    answers = [
        *([httpx.Response(401, stream=refused)] if with_token else []),
        httpx.Response(302, headers={"Location": "/elsewhere"}, stream=moved),
        httpx.Response(200, stream=last),
    ]
    settings = registry_settings(with_tokens(fake, oauth) if with_token else connection(fake))
    transport = httpx.MockTransport(lambda request: answers.pop(0))
    client = http_client(settings, timeout_seconds=5, transport=transport)

    with client, client.stream("GET", f"{fake.url}/subjects") as response:
        assert (response.status_code, refused.read, moved.read, last.read) == (200, 0, 0, 0)
        assert (len(response.read()), last.read) == (300, 3)


def test_a_registry_of_a_private_authority_is_trusted_where_the_connection_names_it(fake):
    assert asked(connection(fake, ca_pem=OURS)) == '"string"'
    assert greet_registry(connection(fake, ca_pem=OURS)) == 0


@pytest.mark.parametrize("extra", [{}, {"ca_pem": Authority("somebody else").pem}])
def test_a_registry_that_nobody_vouches_for_gets_no_login(extra, fake):
    with pytest.raises(RegistryUnavailableError) as caught:
        asked(connection(fake, login="me", password="s3cret", **extra))

    assert caught.value.reason.startswith("its certificate is not trusted (")
    assert fake.calls == []


def test_a_certificate_for_another_host_is_refused(tmp_path):
    context = authority().server_context(tmp_path)
    context.load_cert_chain(*authority().server("registry.example").files_in(tmp_path))
    registry = FakeRegistry(context)
    try:
        with pytest.raises(RegistryUnavailableError, match="not trusted"):
            asked(connection(registry, ca_pem=OURS))
    finally:
        registry.stop()


def test_a_registry_that_asks_for_a_certificate_gets_the_one_of_the_connection(choosy):
    extra = {"certificate_pem": SHOWN.certificate, "private_key_pem": SHOWN.private_key}

    assert asked(connection(choosy, ca_pem=OURS, **extra)) == '"string"'


def test_a_registry_that_asks_for_a_certificate_lets_nobody_in_without(choosy):
    with pytest.raises(RegistryUnavailableError):
        asked(connection(choosy, ca_pem=OURS))

    assert choosy.calls == []


def test_one_token_is_shown_with_each_request_until_it_ends(fake, oauth):
    fake.answers["/schemas/ids/6"] = ANSWER
    with SchemaRegistry(registry_settings(with_tokens(fake, oauth)), attempts=1) as registry:
        registry.schema(5)
        registry.schema(6)

    assert [form["scope"] for form in oauth.asked] == [["lake"]]
    assert [each.partition(" ")[0] for each in fake.authorizations] == ["Bearer", "Bearer"]
    assert len(set(fake.authorizations)) == 1


def test_a_token_that_is_about_to_end_is_renewed(fake, oauth):
    oauth.seconds = 10
    fake.answers["/schemas/ids/6"] = ANSWER
    with SchemaRegistry(registry_settings(with_tokens(fake, oauth)), attempts=1) as registry:
        registry.schema(5)
        registry.schema(6)

    assert len(set(fake.authorizations)) == 2


def test_a_token_that_is_refused_is_asked_for_once_more(fake, oauth):
    fake.failures = [401]

    assert asked(with_tokens(fake, oauth)) == '"string"'
    assert len(set(fake.authorizations)) == 2


def test_an_oauth_server_that_refuses_the_client_is_named_with_its_status(fake, oauth):
    with pytest.raises(RegistryUnavailableError) as caught:
        asked(with_tokens(fake, oauth, password="wrong"))

    assert caught.value.reason == "the OAuth server answers with status 401"
    assert fake.calls == []


def test_an_oauth_server_that_nobody_vouches_for_gets_no_secret(fake, oauth):
    with pytest.raises(RegistryUnavailableError, match="not trusted"):
        asked(with_tokens(fake, oauth, oauth_ca_pem=Authority("somebody else").pem))

    assert oauth.asked == []


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ({"certificate_pem": SHOWN.certificate}, "both certificate_pem and private_key_pem"),
        ({"private_key_pem": SHOWN.private_key}, "both certificate_pem and private_key_pem"),
        ({"ca_pem": "/etc/ca.pem"}, "its ca_pem must be the certificate's text"),
        (
            {
                "certificate_pem": SHOWN.certificate,
                "private_key_pem": SHOWN.private_key.replace("PRIVATE", "EC PRIVATE"),
            },
            "openssl pkcs8 -topk8 -nocrypt",
        ),
        (
            {"certificate_pem": SHOWN.certificate, "private_key_pem": authority().client().private_key},
            "do not belong together",
        ),
        ({"ca_pem": "-----BEGIN CERTIFICATE-----\nMIIB\n"}, "OpenSSL cannot read its ca_pem"),
        ({"oauth_scope": "lake"}, "oauth_scope that nothing would use"),
        ({"oauth_url": "https://login.example/token"}, "needs login and password"),
        ({"oauth_url": "http://login.example/token"}, "must begin with https"),
        ({"oauth_url": "login.example"}, "must be a URL"),
        ({"ca_cert": "x"}, "unknown key `ca_cert`"),
    ],
)
def test_half_of_a_setting_is_refused_and_shows_no_secret(extra, problem, fake):
    with pytest.raises(MissingConnectionError, match=problem) as caught:
        registry_settings(connection(fake, **extra))

    assert SHOWN.private_key.splitlines()[1] not in f"{caught.value}{caught.value.__cause__}"


def test_no_repr_shows_a_key_or_a_secret(fake, oauth):
    extra = {"certificate_pem": SHOWN.certificate, "private_key_pem": SHOWN.private_key}
    text = repr(registry_settings(with_tokens(fake, oauth, **extra)))

    assert SHOWN.private_key.splitlines()[1] not in text
    assert CLIENT_SECRET not in text
    assert "sec" not in text.replace("https", "")


@pytest.mark.parametrize("generation", ["2", "after20261120"])
def test_the_generation_of_a_rebuilt_registry_is_read_from_its_connection(fake, generation):
    assert registry_settings(connection(fake, generation=generation)).generation == generation


@pytest.mark.parametrize("generation", ["../2", "Two", "a" * 21])
def test_a_generation_that_cannot_be_a_folder_is_refused(fake, generation):
    with pytest.raises(MissingConnectionError, match="its generation must be"):
        registry_settings(connection(fake, generation=generation))
