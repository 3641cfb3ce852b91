"""Somebody else at the registry's address, a refused login and an outage are told apart."""

from __future__ import annotations

import httpx
import pytest

from cdc_lakehouse.config.settings import Connection, Role
from cdc_lakehouse.errors import MissingConnectionError, RegistryUnavailableError
from cdc_lakehouse.preflight.greeting import greet_registry

CONNECTION = Connection(Role.REGISTRY, host="http://r/v7", login="me", password="pw")


def greeted_by(answer: httpx.Response) -> int:
    return greet_registry(CONNECTION, httpx.MockTransport(lambda request: answer))


def test_a_registry_says_how_many_subjects_it_has():
    assert greeted_by(httpx.Response(200, json=["a-key", "a-value"])) == 2


def test_the_login_goes_to_the_subjects_of_the_url():
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((str(request.url), request.headers["authorization"]))
        return httpx.Response(200, json=[])

    greet_registry(CONNECTION, httpx.MockTransport(answer))

    assert asked == [("http://r/v7/subjects", "Basic bWU6cHc=")]


@pytest.mark.parametrize(
    "answer",
    [httpx.Response(404), httpx.Response(200, text="<html>"), httpx.Response(200, json={"a": 1})],
)
def test_somebody_else_at_the_registrys_url_is_noticed(answer):
    with pytest.raises(MissingConnectionError) as caught:
        greeted_by(answer)

    assert (
        caught.value.problem == "http://r/v7 is no schema registry; Apicurio's URL ends with /apis/ccompat/v7"
    )


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_login_is_for_a_person_to_correct(status):
    with pytest.raises(MissingConnectionError) as caught:
        greeted_by(httpx.Response(status))

    assert caught.value.problem == f"the registry refuses its login (HTTP {status})"


def test_a_registry_that_is_ill_may_be_well_next_time():
    with pytest.raises(RegistryUnavailableError) as caught:
        greeted_by(httpx.Response(503))

    assert caught.value.reason == "HTTP 503"
