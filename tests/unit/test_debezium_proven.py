"""Only connectors whose order was proven are read without being asked for."""

from __future__ import annotations

import json

import pytest
from debezium_records import envelope_schema, field  # type: ignore[import-not-found]

from cdc_lakehouse.debezium.proven import connector_of, refuse_unproven, unproven_connectors
from cdc_lakehouse.errors import UnprovenSourceError
from unit.captured_records import topics  # type: ignore[import-not-found]


def schema(connector: str, **source: object) -> str:
    """A value schema as this connector registers it; `source` changes its source record."""
    envelope = envelope_schema([field("id", "long")])
    record = next(each for each in envelope["fields"] if each["name"] == "source")
    record["type"] = {**record["type"], "namespace": f"io.debezium.connector.{connector}", **source}
    return json.dumps(envelope)


@pytest.mark.parametrize("connector", ["postgresql", "mysql", "mariadb", "sqlserver", "oracle", "mongo"])
def test_the_schema_of_a_change_names_its_connector(connector):
    assert connector_of(schema(connector)) == connector


def test_a_connector_is_named_by_avro_or_by_kafka_connect():
    named = {"name": "io.debezium.connector.db2.Source", "namespace": "x"}
    adjusted = {"namespace": "x", "connect.name": "io.debezium.connector.vitess.Source"}

    assert connector_of(schema("", **named)) == "db2"
    assert connector_of(schema("", **adjusted)) == "vitess"


@pytest.mark.parametrize(
    "source",
    [
        {"namespace": "com.example", "name": "Origin"},
        {"namespace": "io.debezium.connector.postgresql", "name": "SourceOfAnother"},
        {"namespace": "com.io.debezium.connector.postgresql", "name": "Source"},
    ],
)
def test_a_source_of_another_name_is_not_taken_for_a_proven_one(source):
    text = schema("", **source)

    assert unproven_connectors([text]) == [f"{source['namespace']}.{source['name']}"]


def test_one_schema_of_another_connector_is_enough_to_refuse_the_table():
    with pytest.raises(UnprovenSourceError) as raised:
        refuse_unproven([schema("postgresql"), schema("mariadb")], table="orders")

    assert (raised.value.table, raised.value.connector) == ("orders", "mariadb")
    assert "MariaDB 11.4" in str(raised.value)


def test_a_connector_that_nobody_looked_at_is_told_how_it_would_be_ordered():
    with pytest.raises(UnprovenSourceError, match="offsets in Kafka alone"):
        refuse_unproven([schema("sqlserver")], table="orders")


def test_what_the_real_connector_registers_is_proven():
    texts = [
        topic.schemas[number]
        for topic in topics()
        for number in {number for number, _ in topic.frames("value")}
    ]

    assert len(texts) > 10
    assert unproven_connectors(texts) == []
