"""What Kafka Connect says of its connectors, and what of it may be shown."""

from __future__ import annotations

import httpx
import pytest

from cdc_lakehouse.config.settings import Connection, Role
from cdc_lakehouse.connect.connectors import (
    NOBODY_ASKED,
    RUNS,
    Connector,
    connector_state,
    connectors_by_prefix,
    read_connectors,
)
from cdc_lakehouse.errors import ConnectUnavailableError, MissingConnectionError

CONNECTION = Connection(Role.CONNECT, host="http://connect:8083/", login="ops", password="secret")
TRACE = """\
org.apache.kafka.connect.errors.ConnectException: An exception occurred in the change event producer: 4711
\tat io.debezium.pipeline.ErrorHandler.setProducerThrowable(ErrorHandler.java:79)
Caused by: io.debezium.DebeziumException: row 4711 of card 4111-1111
\tat io.debezium.connector.postgresql.PostgresStreaming.execute(PostgresStreaming.java:10)
Caused by: org.postgresql.util.PSQLException: FATAL: password of 4111-1111
\t... 5 more
"""


def answer(state: str = "RUNNING", *tasks: dict[str, object], **settings: str) -> dict[str, object]:
    """As `GET /connectors?expand=info&expand=status` of Kafka Connect 4.3 has one connector."""
    config = {"name": "shop", "topic.prefix": "shop", "database.password": "secret", **settings}
    return {
        "info": {
            "name": "shop",
            "config": config,
            "tasks": [{"connector": "shop", "task": 0}],
            "type": "source",
        },
        "status": {
            "name": "shop",
            "connector": {"state": state, "worker_id": "127.0.0.1:8083", "version": "3.7.0.Final"},
            "tasks": list(tasks),
            "type": "source",
        },
    }


def task(state: str, **more: str) -> dict[str, object]:
    return {"id": 0, "state": state, "worker_id": "127.0.0.1:8083", **more}


def read(document: object, status: int = 200) -> tuple[Connector, ...]:
    return read_connectors(
        CONNECTION, httpx.MockTransport(lambda request: httpx.Response(status, json=document))
    )


def test_a_line_of_a_message_is_no_exception_whatever_it_looks_like():
    """Messages of databases have several lines, and some of them show the row."""
    trace = "a.ConnectException: it failed\nCaused by: b.Error: the row\njohn.doe: 4711\nmail.example.Smith\n"
    (connector,) = read({"shop": answer("RUNNING", task("FAILED", trace=trace))})

    assert connector.problem == "connector shop: task 0 is FAILED (ConnectException, caused by Error)"
    assert connector.parts[1].exceptions == ("a.ConnectException", "b.Error")


def test_connectors_are_asked_for_in_one_call_with_the_login():
    seen = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append((str(request.url), request.headers["authorization"][:6]))
        return httpx.Response(200, json={"shop": answer("RUNNING", task("RUNNING"))})

    (found,) = read_connectors(CONNECTION, httpx.MockTransport(handle))

    assert seen == [("http://connect:8083/connectors?expand=info&expand=status", "Basic ")]
    assert (found.name, found.prefix, found.problem) == ("shop", "shop", None)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (answer("RUNNING", task("FAILED", trace=TRACE)),
         "connector shop: task 0 is FAILED (ConnectException, caused by PSQLException)"),
        (answer("PAUSED", task("PAUSED")), "connector shop: the connector is PAUSED; task 0 is PAUSED"),
        (answer("RUNNING"), "connector shop has no task"),
        (answer("FAILED", trace="x"), "connector shop: the connector is FAILED"),
        (answer("RUNNING", task("RUNNING")), None),
    ],
    ids=["failed task", "paused", "no task", "failed connector", "runs"],
)  # fmt: skip
def test_a_connector_that_does_not_run_says_why_without_a_value_of_a_row(document, problem):
    (found,) = read({"shop": document})

    assert found.problem == problem
    assert "4111" not in repr(found)
    assert "secret" not in repr(found)


@pytest.mark.parametrize("status", [409, 500, 503])
def test_a_passing_failure_is_worth_another_try(status):
    with pytest.raises(ConnectUnavailableError) as raised:
        read({"error_code": status, "message": "rebalance"}, status)

    assert raised.value.reason == f"HTTP {status}"


@pytest.mark.parametrize(
    ("document", "status"),
    [({}, 401), ({}, 403), (["subject"], 200), ({"shop": {"info": {}}}, 200), ("x", 200), ({"a": 1}, 404)],
)
def test_a_refused_login_or_another_service_is_a_fault_of_the_connection(document, status):
    with pytest.raises(MissingConnectionError) as raised:
        read(document, status)

    assert raised.value.connection == "CDC_LAKEHOUSE_CONN_CONNECT"


def test_of_two_connectors_with_one_prefix_the_one_that_does_not_run_counts():
    stopped, running = answer("STOPPED"), answer("RUNNING", task("RUNNING"))

    assert connectors_by_prefix(read({"a": running, "b": stopped, "c": running}))["shop"].name == "b"


def test_the_state_of_a_tables_connector_is_told_as_far_as_it_is_known():
    known = connectors_by_prefix(read({"shop": answer("RUNNING", task("RUNNING"))}))
    routed = connectors_by_prefix(read({"shop": answer("RUNNING", task("RUNNING"), transforms="route")}))
    missing = connector_state({"billing"}, known)

    assert connector_state({"shop"}, None) == NOBODY_ASKED
    assert connector_state({"shop"}, known) == RUNS
    assert connector_state({"billing"}, routed) == RUNS
    assert (missing.runs, missing.sentence) == (
        False,
        "Kafka Connect has no connector whose topic.prefix is billing",
    )
