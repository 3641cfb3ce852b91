"""The registry client against a real HTTP server that fails as told."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from cdc_lakehouse.avro.writer import writer_schema
from cdc_lakehouse.errors import NotSupportedYetError, RegistryUnavailableError
from cdc_lakehouse.registry.client import SchemaRegistry


class FakeRegistry:
    """Answers by path; `failures` are sent first, one per call."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.failures: list[int] = []
        self.calls: list[str] = []
        self.authorizations: list[str | None] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                fake.calls.append(self.path)
                fake.authorizations.append(self.headers.get("Authorization"))
                known = self.path in fake.answers
                status = fake.failures.pop(0) if fake.failures else (200 if known else 404)
                body = fake.answers.get(self.path, {"error_code": 40403})
                sent = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()


@pytest.fixture
def fake():
    registry = FakeRegistry()
    yield registry
    registry.server.shutdown()
    registry.server.server_close()


def client(fake: FakeRegistry, **options: Any) -> SchemaRegistry:
    return SchemaRegistry(fake.url + "/", first_wait_seconds=0.001, timeout_seconds=2, **options)


def test_a_schema_is_read_once(fake):
    fake.answers["/schemas/ids/5"] = {"schema": '"int"'}
    registry = client(fake)
    assert [registry.schema(5), registry.schema(5)] == ['"int"', '"int"']
    assert fake.calls == ["/schemas/ids/5"]


def test_an_id_that_nobody_knows_is_none_and_asked_once(fake):
    assert client(fake).schema(5) is None
    assert fake.calls == ["/schemas/ids/5"]


@pytest.mark.parametrize("status", [401, 403, 408, 429, 500, 502, 503])
def test_a_passing_failure_is_tried_again(fake, status):
    fake.answers["/schemas/ids/5"] = {"schema": '"int"'}
    fake.failures = [status, status]
    assert client(fake).schema(5) == '"int"'


@pytest.mark.parametrize("status", [401, 408, 503])
def test_a_lasting_failure_is_unavailable_never_unknown(fake, status):
    fake.failures = [status] * 3
    with pytest.raises(RegistryUnavailableError) as caught:
        client(fake).schema(5)
    assert caught.value.reason == f"status {status}"
    assert len(fake.calls) == 3


def test_a_registry_that_is_down_is_unavailable():
    with pytest.raises(RegistryUnavailableError) as caught:
        SchemaRegistry("http://user:hush@127.0.0.1:1", attempts=1).schema(5)
    assert caught.value.reason == "ConnectError"
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}"])
def test_an_answer_that_makes_no_sense_is_unavailable(fake, body):
    fake.answers["/schemas/ids/5"] = body
    with pytest.raises(RegistryUnavailableError):
        client(fake).schema(5)


def test_versions_come_oldest_first_and_unknown_subjects_have_none(fake):
    fake.answers["/subjects/t-value/versions"] = [2, 1]
    fake.answers["/subjects/t-value/versions/1"] = {"id": 8, "schema": '"int"'}
    fake.answers["/subjects/t-value/versions/2"] = {"id": 3, "schema": '"long"'}
    assert client(fake).versions("t-value") == [(8, '"int"'), (3, '"long"')]
    assert client(fake).versions("other") == []


def test_prefetch_reads_both_subjects_of_every_topic(fake):
    fake.answers["/subjects/t-key/versions"] = [1]
    fake.answers["/subjects/t-key/versions/1"] = {"id": 1, "schema": '"int"'}
    fake.answers["/subjects/t-value/versions"] = [4]
    fake.answers["/subjects/t-value/versions/4"] = {"id": 2, "schema": '"long"'}
    registry = client(fake)
    assert registry.prefetch(["t"]) == {1: '"int"', 2: '"long"'}
    assert registry.schemas([1, 2, 3]) == {1: '"int"', 2: '"long"'}
    assert fake.calls[-1] == "/schemas/ids/3"


def test_login_and_password_are_sent(fake):
    client(fake, login="me", password="word").schema(5)
    assert fake.authorizations == ["Basic bWU6d29yZA=="]


def test_referenced_types_are_written_in_where_they_are_first_named(fake):
    point = {"type": "record", "name": "Point", "namespace": "geo", "fields": [{"name": "x", "type": "Unit"}]}
    unit = {"type": "fixed", "name": "Unit", "namespace": "geo", "size": 1}
    top = {
        "type": "record",
        "name": "Top",
        "fields": [{"name": "a", "type": ["null", "geo.Point"]}, {"name": "b", "type": "geo.Point"}],
    }
    fake.answers["/subjects/unit/versions/1"] = {"id": 1, "schema": json.dumps(unit)}
    fake.answers["/subjects/point/versions/2"] = {
        "id": 2,
        "schema": json.dumps(point),
        "references": [{"name": "geo.Unit", "subject": "unit", "version": 1}],
    }
    fake.answers["/schemas/ids/3"] = {
        "schema": json.dumps(top),
        "references": [{"name": "geo.Point", "subject": "point", "version": 2}],
    }
    text = client(fake).schema(3)
    assert writer_schema(text).read(b"\x02\x41\x42") == {"a": {"x": b"A"}, "b": {"x": b"B"}}


def test_another_kind_of_schema_is_refused(fake):
    fake.answers["/schemas/ids/5"] = {"schema": "{}", "schemaType": "JSON"}
    with pytest.raises(NotSupportedYetError, match="JSON"):
        client(fake).schema(5)
