"""What the registry says of a topic becomes lines that name the columns concerned."""

from __future__ import annotations

import json
from collections.abc import Mapping

import httpx
import pytest

from cdc_lakehouse.config.settings import Connection, Role
from cdc_lakehouse.contract import ExitCode
from cdc_lakehouse.errors import MissingConnectionError, RegistryUnavailableError
from cdc_lakehouse.preflight.schemas import (
    Registry,
    TopicSchemas,
    null_becomes_default,
    topic_schema_findings,
)

KEY = json.dumps({"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]})


def envelope(*columns: Mapping[str, object]) -> str:
    row = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "int"}, *columns]}
    source = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": ["null", "long"]}]}
    return json.dumps(
        {
            "type": "record",
            "name": "Envelope",
            "fields": [
                {"name": "before", "type": ["null", row], "default": None},
                {"name": "after", "type": ["null", "Value"], "default": None},
                {"name": "source", "type": source},
                {"name": "op", "type": "string"},
            ],
        }
    )


def registry(answers: dict[str, httpx.Response], login: str | None = None) -> Registry:
    def answer(request: httpx.Request) -> httpx.Response:
        return answers.get(request.url.raw_path.decode(), httpx.Response(404, json={"error_code": 40401}))

    return Registry(Connection(Role.REGISTRY, host="http://r/v7", login=login), httpx.MockTransport(answer))


def test_a_table_that_can_be_stored_is_one_line():
    findings = list(topic_schema_findings("orders", "t", TopicSchemas(KEY, envelope())))

    assert [(found.level, found.sentence) for found in findings] == [("ok", "columns 1, key id")]


def test_a_column_that_cannot_be_stored_is_a_problem_with_its_name():
    odd = {"type": "record", "name": "Odd", "fields": [{"name": "x", "type": "int"}]}
    findings = list(
        topic_schema_findings("orders", "t", TopicSchemas(KEY, envelope({"name": "at", "type": odd})))
    )

    assert [found.exit_code for found in findings] == [ExitCode.CONFIG]
    assert "column at of orders" in findings[0].sentence


def test_nullable_columns_with_a_default_are_named():
    columns = (
        {"name": "status", "type": ["string", "null"], "default": "new"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "amount", "type": "int", "default": 0},
        {"name": "paid", "type": ["boolean", "null"], "default": False},
    )

    assert null_becomes_default(envelope(*columns)) == ("status", "paid")


def test_null_becomes_default_is_a_warning():
    value = envelope({"name": "status", "type": ["string", "null"], "default": "new"})
    findings = list(topic_schema_findings("orders", "t", TopicSchemas(KEY, value)))

    assert [(found.level, found.sentence) for found in findings] == [
        ("ok", "columns 2, key id"),
        ("warning", "NULL becomes DEFAULT: a NULL in status may arrive as the column's default"),
    ]


def test_a_topic_without_a_value_subject_is_not_checked_and_says_so():
    (finding,) = topic_schema_findings("orders", "t", TopicSchemas(None, None))

    assert (finding.level, finding.sentence) == (
        "warning",
        "the registry has no subject t-value, so its columns were not checked",
    )


def test_a_topic_without_a_key_cannot_become_silver():
    (finding,) = topic_schema_findings("orders", "t", TopicSchemas(None, envelope()))

    assert (finding.level, finding.exit_code) == ("problem", ExitCode.CONFIG)


def test_the_newest_schemas_of_a_topic_are_read_by_subject():
    found = registry(
        {
            "/v7/subjects": httpx.Response(200, json=["a/b-key"]),
            "/v7/subjects/a%2Fb-key/versions/latest": httpx.Response(200, json={"schema": KEY}),
        }
    )

    assert found.greet() == 1
    assert found.schemas_of("a/b") == TopicSchemas(key=KEY, value=None)


@pytest.mark.parametrize(
    "answer",
    [httpx.Response(404), httpx.Response(200, text="<html>"), httpx.Response(200, json={"a": 1})],
)
def test_somebody_else_at_the_registrys_url_is_noticed(answer):
    with pytest.raises(MissingConnectionError) as caught:
        registry({"/v7/subjects": answer}).greet()

    assert (
        caught.value.problem == "http://r/v7 is no schema registry; Apicurio's URL ends with /apis/ccompat/v7"
    )


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_login_is_for_a_person_to_correct(status):
    with pytest.raises(MissingConnectionError) as caught:
        registry({"/v7/subjects": httpx.Response(status)}, login="me").greet()

    assert caught.value.problem == f"the registry refuses its login (HTTP {status})"


def test_a_registry_that_is_ill_may_be_well_next_time():
    with pytest.raises(RegistryUnavailableError) as caught:
        registry({"/v7/subjects": httpx.Response(503)}).greet()

    assert caught.value.reason == "HTTP 503"


def test_a_certificate_that_is_none_is_named():
    with pytest.raises(MissingConnectionError) as caught:
        Registry(Connection(Role.REGISTRY, host="https://r", extra={"ca_pem": "-----BEGIN CERTIFICATE-----"}))

    assert caught.value.problem.startswith("its ca_pem is not a certificate")
